#include "graph/onnx/mappable_model.h"

#include <onnx/onnx_pb.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace fleetfit::graph::onnx_format {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLengthBytes = 5;  // enough for all lengths of a message, below 2 GiB

/// What stands before a field that has a length. The length always takes the same room (protobuf
/// allows leading zeros), so that it does not matter for what follows.
std::array<char, 1 + kLengthBytes> field_start(int number, std::size_t length) {
  constexpr int kHasLength = 2;
  std::array<char, 1 + kLengthBytes> start{};
  start[0] = static_cast<char>(number << 3 | kHasLength);
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    const bool is_last = i + 1 == kLengthBytes;
    start[1 + i] = static_cast<char>((length >> 7 * i & 0x7f) | (is_last ? 0 : 0x80));
  }
  return start;
}

void append_field(std::string& out, int number, std::string_view content) {
  const auto start = field_start(number, content.size());
  out.append(start.data(), start.size()).append(content);
}

/// Where field numbers are below 16, this many bytes stand before each content.
constexpr std::size_t kStartBytes = 1 + kLengthBytes;

/// Appends a tensor whose data gets aligned by a comment of spaces before it. `offset` is where
/// `out` will stand in the file.
void append_tensor(std::string& out, onnx::TensorProto& tensor, std::size_t offset) {
  std::string data;
  data.swap(*tensor.mutable_raw_data());
  tensor.clear_raw_data();
  std::string body = tensor.SerializeAsString();
  const auto before = offset + out.size() + kStartBytes + body.size() + 2 * kStartBytes;
  const auto spaces = (kAlignment - before % kAlignment) % kAlignment;
  append_field(body, onnx::TensorProto::kDocStringFieldNumber, std::string(spaces, ' '));
  append_field(body, onnx::TensorProto::kRawDataFieldNumber, data);
  append_field(out, onnx::GraphProto::kInitializerFieldNumber, body);
}

}  // namespace

std::string serialize_mappable(onnx::ModelProto& model) {
  onnx::GraphProto graph;
  graph.Swap(model.mutable_graph());
  model.clear_graph();
  google::protobuf::RepeatedPtrField<onnx::TensorProto> tensors;
  tensors.Swap(graph.mutable_initializer());

  std::string file = model.SerializeAsString();
  std::string body = graph.SerializeAsString();
  const auto offset = file.size() + kStartBytes;
  for (auto& tensor : tensors) append_tensor(body, tensor, offset);
  append_field(file, onnx::ModelProto::kGraphFieldNumber, body);
  return file;
}

}  // namespace fleetfit::graph::onnx_format
