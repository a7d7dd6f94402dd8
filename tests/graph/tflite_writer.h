#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tflite_generated.h"

namespace fleetfit::graph::tflite {

/// Writes small TFLite files for tests, also broken ones: nothing is checked.
class TfliteWriter {
 public:
  struct TensorSpec {
    std::string name;
    file::TensorType type = file::TensorType::FLOAT32;
    std::optional<std::vector<int>> shape;  ///< absent: null in the file
    std::vector<int> signature;             ///< empty: null
    std::vector<float> scales;              ///< empty: no quantization
    std::vector<std::int64_t> zero_points;
    int axis = 0;
    std::optional<std::uint32_t> buffer;  ///< instead of the one for its data
    std::vector<std::uint8_t> data;       ///< empty: no constant
    bool is_variable = false;
    bool is_sparse = false;
  };

  int tensor(const TensorSpec& spec) {
    std::uint32_t buffer = 0;
    if (!spec.data.empty()) {
      buffer = static_cast<std::uint32_t>(buffers_.size());
      buffers_.push_back(file::CreateBuffer(builder_, builder_.CreateVector(spec.data)));
    }
    flatbuffers::Offset<file::QuantizationParameters> quantization;
    if (!spec.scales.empty() || !spec.zero_points.empty()) {
      quantization = file::CreateQuantizationParameters(
          builder_, builder_.CreateVector(spec.scales),
          spec.zero_points.empty() ? 0 : builder_.CreateVector(spec.zero_points), 0, spec.axis);
    }
    flatbuffers::Offset<flatbuffers::Vector<int>> shape;
    flatbuffers::Offset<flatbuffers::Vector<int>> signature;
    flatbuffers::Offset<file::Unread> sparsity;
    if (spec.shape) shape = builder_.CreateVector(*spec.shape);
    if (!spec.signature.empty()) signature = builder_.CreateVector(spec.signature);
    if (spec.is_sparse) sparsity = file::CreateUnread(builder_);
    tensors_.push_back(file::CreateTensor(builder_, shape, spec.type, spec.buffer.value_or(buffer),
                                          builder_.CreateString(spec.name), quantization,
                                          spec.is_variable, sparsity, signature));
    return static_cast<int>(tensors_.size() - 1);
  }

  /// Tensors that are all stored in one place, that of the last one.
  void repeat_tensor(std::size_t times) { tensors_.insert(tensors_.end(), times, tensors_.back()); }

  /// A constant of whole numbers, as axes and shapes are.
  int ints(const std::vector<std::int32_t>& values) {
    return tensor({.name = "ints",
                   .type = file::TensorType::INT32,
                   .shape = std::vector<int>{static_cast<int>(values.size())},
                   .data = bytes_of(values)});
  }

  template <class T>
  static std::vector<std::uint8_t> bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return {first, first + bytes.size()};
  }

  /// An operator whose options, if any, are given as a table made with builder().
  template <class Options = void>
  void op(file::BuiltinOperator code, const std::vector<int>& inputs,
          const std::vector<int>& outputs, flatbuffers::Offset<Options> options = {}) {
    auto type = file::BuiltinOptions::NONE;
    if constexpr (!std::is_void_v<Options>) type = file::BuiltinOptionsTraits<Options>::enum_value;
    operators_.push_back(file::CreateOperator(
        builder_, code_index(file::CreateOperatorCode(builder_, old_code(code), 0, 1, code)),
        builder_.CreateVector(inputs), builder_.CreateVector(outputs), type, options.Union()));
  }

  void custom_op(const std::string& code, const std::vector<int>& inputs,
                 const std::vector<int>& outputs, const std::vector<std::uint8_t>& options) {
    const auto index = code_index(
        file::CreateOperatorCode(builder_, static_cast<std::int8_t>(file::BuiltinOperator::CUSTOM),
                                 builder_.CreateString(code), 1, file::BuiltinOperator::CUSTOM));
    operators_.push_back(file::CreateOperator(
        builder_, index, builder_.CreateVector(inputs), builder_.CreateVector(outputs),
        file::BuiltinOptions::NONE, 0, builder_.CreateVector(options)));
  }

  std::vector<std::byte> finish(const std::vector<int>& inputs, const std::vector<int>& outputs) {
    const auto graph =
        file::CreateSubGraph(builder_, builder_.CreateVector(tensors_),
                             builder_.CreateVector(inputs), builder_.CreateVector(outputs),
                             builder_.CreateVector(operators_), builder_.CreateString("main"));
    const std::vector<flatbuffers::Offset<file::SubGraph>> graphs{graph};
    builder_.Finish(
        file::CreateModel(builder_, 3, builder_.CreateVector(codes_), builder_.CreateVector(graphs),
                          builder_.CreateString("test"), builder_.CreateVector(buffers_)),
        file::ModelIdentifier());
    const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
    return {bytes.begin(), bytes.end()};
  }

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

 private:
  static std::int8_t old_code(file::BuiltinOperator code) {
    return static_cast<std::int8_t>(std::min(static_cast<int>(code), 127));
  }

  std::uint32_t code_index(flatbuffers::Offset<file::OperatorCode> code) {
    codes_.push_back(code);
    return static_cast<std::uint32_t>(codes_.size() - 1);
  }

  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<file::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<file::OperatorCode>> codes_;
  std::vector<flatbuffers::Offset<file::Operator>> operators_;
  std::vector<flatbuffers::Offset<file::Buffer>> buffers_{file::CreateBuffer(builder_)};
};

}  // namespace fleetfit::graph::tflite
