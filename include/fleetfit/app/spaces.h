#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"

/// Use cases on spaces of networks: which there are, what is in one, a look at a design.
namespace fleetfit::app {

struct SpaceSummary {
  std::string name;
  std::string description;
  std::string designs;  ///< how many there are, exactly, in decimal
  double designs_log10 = 0;
  std::vector<std::string> columns;  ///< key columns of its tables
};

std::vector<SpaceSummary> list_spaces();

struct GeneSummary {
  std::string name;
  std::vector<std::string> choices;
};

struct EncodingSummary {
  std::string name;
  std::size_t features = 0;
};

struct SpaceDetails {
  SpaceSummary space;
  int version = 1;
  std::vector<GeneSummary> genes = {};
  std::vector<EncodingSummary> encodings = {};
  std::string example = {};  ///< a design's text
};

/// `not_found`, with the names of those that there are.
Result<SpaceDetails> show_space(std::string_view space);

/// A design as text and as the cells of its key columns.
struct DesignText {
  std::string design;
  std::vector<std::pair<std::string, std::string>> cells;  ///< column and text
};

struct DesignSummary {
  DesignText text;
  std::int64_t flops = 0;
  std::int64_t params = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t peak_activation_bytes = 0;
  std::size_t operators = 0;  ///< nodes of its graph
  std::vector<std::int64_t> input;
  /// How often each kind of operator occurs, those that do not left out.
  std::vector<std::pair<std::string, double>> counts;
  std::size_t slots = 0;       ///< places in which something is
  std::size_t live_slots = 0;  ///< those of them that do not work for nothing
};

/// `design` is its text, or the cells of its key columns with commas between them. Also writes the
/// network as ONNX if `file` names one.
Result<DesignSummary> show_design(std::string_view space, std::string_view design,
                                  const std::optional<std::filesystem::path>& file = {});

struct DesignSampleRequest {
  std::string space;
  std::uint64_t seed = 1;
  std::size_t first = 0;
  std::size_t samples = 0;
};

/// The designs that `measure` would take.
Result<std::vector<DesignText>> sample_space(const DesignSampleRequest& request);

/// A table with the key columns alone, to be filled in by measuring.
Status write_designs(const std::vector<DesignText>& designs, const std::filesystem::path& file);

nlohmann::ordered_json to_json(const std::vector<SpaceSummary>& spaces);
nlohmann::ordered_json to_json(const SpaceDetails& details);
nlohmann::ordered_json to_json(const DesignSummary& design);
nlohmann::ordered_json to_json(const std::vector<DesignText>& designs);

}  // namespace fleetfit::app
