#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/learned/device_features.h"

/// Files that describe devices to networks that take a device as input.
namespace fleetfit::app {

/// Reference designs of a table of latencies. Of `rows` and `designs` one may be given; without
/// them `count` designs are chosen.
struct ReferenceRequest {
  std::filesystem::path table = {};
  std::string space = {};
  std::vector<std::size_t> rows = {};  ///< from 0
  std::vector<std::string> designs = {};
  std::size_t count = 10;
  std::vector<std::string> devices = {};  ///< columns of the table; empty: all
};

/// What `device probe --json` printed on a device.
struct ProbeFile {
  std::string device = {};
  std::filesystem::path file = {};
};

struct SheetRequest {
  std::filesystem::path file = {};
  std::string device_column = "device";
};

struct FeaturesRequest {
  std::optional<ReferenceRequest> references = std::nullopt;
  std::vector<ProbeFile> probes = {};
  std::optional<SheetRequest> sheet = std::nullopt;
  std::vector<std::filesystem::path> files = {};  ///< of features that exist already
  std::uint64_t seed = 1;
};

struct MadeFeatures {
  learned::DeviceFeatures features = {};
  std::vector<std::string> left_out = {};  ///< columns of the sheet that hold text
};

/// Puts all together by the devices' names. Fails with `invalid_input` or `not_found`, naming the
/// file and its place or the flag, if one of them is wrong, if a feature comes from two of them, or
/// if nothing was asked for.
Result<MadeFeatures> make_device_features(const FeaturesRequest& request);

/// Fails as `write_file` does.
Status write_features(const MadeFeatures& made, const std::filesystem::path& path);

/// {"devices": [names], "columns": [names], "missing", "left_out": [names]}; `missing` is the
/// number of empty cells.
nlohmann::ordered_json to_json(const MadeFeatures& made);

}  // namespace fleetfit::app
