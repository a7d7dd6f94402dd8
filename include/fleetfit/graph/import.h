#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

enum class ModelFormat : std::uint8_t { onnx, tflite, ncnn };

/// "onnx", "tflite", "ncnn".
std::string_view to_string(ModelFormat format);

struct ImportOptions {
  std::map<std::string, std::int64_t>
      dimensions;                  ///< extents for dimensions that the file leaves open, by name
  std::int64_t batch = 1;          ///< for an open first dimension without one
  std::int64_t open_extent = 224;  ///< for any other open dimension without one
};

/// An extent that was not in the file.
struct AssumedDimension {
  std::string input;
  std::string name;
  std::int64_t extent = 0;
};

/// A model as its file says it: operators as they stand, no pass applied.
struct ImportedModel {
  Graph graph;
  ModelFormat format = ModelFormat::onnx;
  std::int64_t opset = 0;  ///< of an ONNX file; 1 if it does not say, as only the oldest do
  std::vector<AssumedDimension> assumed;
};

/// Reads a model file; the format is known by its content and, failing that, by its name. No input
/// crashes it or makes it use much more memory than the file is long: what is wrong is
/// `invalid_input`, `not_found` or `io`, the message naming file and node.
Result<ImportedModel> import_model(const std::filesystem::path& file,
                                   const ImportOptions& options = {});

/// ONNX, opsets 7 to 17 (others as far as their operators mean the same). Tensors kept in files of
/// their own are read from `folder` and never from outside of it.
Result<ImportedModel> import_onnx(std::span<const std::byte> bytes,
                                  const std::filesystem::path& folder,
                                  const ImportOptions& options = {});

/// An ONNX model that is a part of some other file: constants refer to `bytes`, which `owner` keeps
/// alive (null: they are copied), and tensors in files of their own are refused.
Result<ImportedModel> import_embedded_onnx(std::span<const std::byte> bytes,
                                           std::shared_ptr<const void> owner,
                                           const ImportOptions& options = {});

/// TFLite. The graph keeps copies of what it needs of `bytes`.
Result<ImportedModel> import_tflite(std::span<const std::byte> bytes,
                                    const ImportOptions& options = {});

/// ncnn's text graph (`.param`). Its weights are not in the file: the graph gets random ones of the
/// right shape, seeded.
Result<ImportedModel> import_ncnn(std::string_view text, const ImportOptions& options = {});

}  // namespace fleetfit::graph
