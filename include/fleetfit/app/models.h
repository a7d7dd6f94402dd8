#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"

/// Use cases on models: what is in a file, conversion, the zoo. Results are plain values;
/// core::to_json gives the documents that the command line's contract describes.
namespace fleetfit::app {

struct ModelOptions {
  std::map<std::string, std::int64_t>
      dimensions;  ///< extents for dimensions that the file leaves open
  std::int64_t batch = 1;
};

struct TensorSummary {
  std::string name;
  std::optional<std::vector<std::int64_t>> shape;
  std::string dtype;
  std::vector<std::string>
      symbols;  ///< names of open dimensions, "" for fixed ones; empty if there are none
  std::optional<float> scale;  ///< of a quantized tensor
  std::optional<std::int32_t> zero_point;
};

/// Counts are absent where nothing can tell them.
struct OperatorSummary {
  std::string name;
  std::string type;
  std::string activation;  ///< fused into it; may be empty
  std::optional<std::int64_t> flops;
  std::optional<std::int64_t> params;
  std::optional<std::int64_t> input_bytes;
  std::optional<std::int64_t> output_bytes;
  std::optional<std::int64_t> weight_bytes;
  std::optional<std::vector<std::int64_t>> output_shape;
};

struct UnsupportedOperator {
  std::string name;
  std::string type;
  std::string why;
};

struct AssumedExtent {
  std::string input;
  std::string dimension;
  std::int64_t extent = 0;
};

struct ModelTotals {
  std::int64_t flops = 0;
  std::int64_t params = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t peak_activation_bytes = 0;
  bool peak_is_least = true;
};

struct ModelSummary {
  std::string format;
  std::vector<TensorSummary> inputs;
  std::vector<TensorSummary> outputs;
  std::vector<OperatorSummary> ops;
  ModelTotals totals;
  std::vector<UnsupportedOperator> unsupported;
  std::vector<AssumedExtent> assumed;
};
core::Fields fields_of(const ModelSummary*);

/// The operators of a model file as they stand, before any pass, with what each costs.
Result<ModelSummary> inspect_model(const std::filesystem::path& file,
                                   const ModelOptions& options = {});

struct ConvertOptions {
  ModelOptions model;
  bool simplify = false;             ///< run the passes that make a network smaller and faster
  std::vector<std::string> without;  ///< names of passes to leave out
};

struct ConvertSummary {
  std::string output;
  std::size_t ops_before = 0;
  std::size_t ops_after = 0;
  std::uintmax_t bytes = 0;
};
core::Fields fields_of(const ConvertSummary*);

/// Reads a model in any format and writes it as ONNX.
Result<ConvertSummary> convert_model(const std::filesystem::path& in,
                                     const std::filesystem::path& out,
                                     const ConvertOptions& options = {});

/// Names and one-line summaries of the passes, for help texts.
struct PassSummary {
  std::string name;
  std::string summary;
};
std::vector<PassSummary> list_passes();

struct ZooSummary {
  std::string name;
  std::string family;
  std::int64_t flops = 0;
  std::int64_t params = 0;
  std::vector<std::int64_t> input;
};
core::Fields fields_of(const ZooSummary*);

/// Every network of the zoo with its size.
Result<std::vector<ZooSummary>> list_zoo(int threads);

struct ZooRequest {
  double width = 1;
  std::optional<std::int64_t> classes;
  std::optional<std::int64_t> image;
  std::optional<std::int64_t> channels;
  std::uint64_t seed = 1;
};

/// One network of the zoo with its size; `not_found`, with the nearest names, if there is none of
/// that name.
Result<ZooSummary> show_zoo_network(std::string_view name, const ZooRequest& request);

struct WrittenModel {
  std::string name;
  std::string file;
  std::uintmax_t bytes = 0;
};
core::Fields fields_of(const WrittenModel*);

/// Writes one network of the zoo as ONNX.
Result<WrittenModel> write_zoo_network(std::string_view name, const std::filesystem::path& file,
                                       const ZooRequest& request);

/// Writes every network into a folder, which is made if need be.
Result<std::vector<WrittenModel>> write_zoo(const std::filesystem::path& folder,
                                            const ZooRequest& request, core::Progress& progress);

}  // namespace fleetfit::app
