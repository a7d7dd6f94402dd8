#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "fleetfit/core/file.h"
#include "fleetfit/core/result.h"
#include "fleetfit/graph/tensor.h"
#include "graph/onnx/onnx_model.h"

namespace fleetfit::graph::onnx_format {

/// Our type for ONNX's number of it; `unknown` for those that have none here.
DType dtype_of(std::int64_t data_type);

/// ONNX's number for our type; 0 if it has none.
int data_type_of(DType dtype);

/// Turns tensor messages into constants that refer to the file's bytes, or to those of files beside
/// it.
class ConstantReader {
 public:
  /// `owner` keeps the file's bytes alive; null: they are copied. External data is looked for in
  /// `folder` only, and refused without one.
  ConstantReader(std::shared_ptr<const void> owner, std::optional<std::filesystem::path> folder)
      : owner_(std::move(owner)), folder_(std::move(folder)) {}

  /// A tensor with shape, type and data.
  Result<Tensor> read(const TensorMessage& message);

 private:
  Result<TensorData> data(const TensorMessage& message, DType dtype, std::size_t count);
  Result<TensorData> external(const TensorMessage& message, std::size_t bytes);
  Result<std::shared_ptr<core::MappedFile>> open(std::string_view location);
  TensorData refer(Bytes bytes) const;

  std::shared_ptr<const void> owner_;
  std::optional<std::filesystem::path> folder_;
  std::map<std::string, std::shared_ptr<core::MappedFile>, std::less<>> files_;
};

}  // namespace fleetfit::graph::onnx_format
