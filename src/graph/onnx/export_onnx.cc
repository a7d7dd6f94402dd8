#include "fleetfit/graph/export.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "fleetfit/core/file.h"
#include "fleetfit/core/version.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/onnx/lowering.h"
#include "graph/onnx/onnx_constants.h"
#include "graph/onnx/onnx_node.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph {
namespace {

using onnx_format::data_type_of;
using onnx_format::describe_tensor;
using onnx_format::NodeWriter;
using onnx_format::write_fields;
using onnx_format::write_tensor;

constexpr int kIrVersion = 8;
constexpr int kOpset = 17;

// Protobuf files end at 2 GiB.
constexpr std::size_t kMostInside = 1'500'000'000;

// --- Tensors ---

/// Weights that go to a file of their own.
struct ExternalWriter {
  std::ofstream stream;
  std::string location;
  std::int64_t offset = 0;

  void write(const Tensor& tensor, onnx::TensorProto& proto) {
    describe_tensor(tensor, proto);
    std::vector<std::byte> bytes(tensor.data->size_bytes());
    tensor.data->copy_to(bytes);
    stream.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    proto.set_data_location(onnx::TensorProto::EXTERNAL);
    const auto add = [&](const char* key, std::string value) {
      auto* entry = proto.add_external_data();
      entry->set_key(key);
      entry->set_value(std::move(value));
    };
    add("location", location);
    add("offset", std::to_string(offset));
    add("length", std::to_string(bytes.size()));
    offset += static_cast<std::int64_t>(bytes.size());
  }
};

// --- Operators ---

void write_node(const Graph& graph, const Node& node, onnx::GraphProto& out) {
  auto& proto = *out.add_node();
  proto.set_name(node.name);
  proto.set_op_type(std::string(type_name(node.op)));
  for (const auto id : node.inputs) proto.add_input(id == kNoTensor ? "" : graph.tensor(id).name);
  for (const auto id : node.outputs) proto.add_output(id == kNoTensor ? "" : graph.tensor(id).name);
  NodeWriter writer(out, proto);
  if (std::holds_alternative<Constant>(node.op)) {
    writer.set("value", graph.tensor(node.outputs[0]));
    return;
  }
  if (const auto write = traits(node.op).write_onnx; write != nullptr) write(node.op, writer);
  write_fields(node.op, writer);
}

// --- The model ---

void write_value(const Tensor& tensor, onnx::ValueInfoProto& proto) {
  proto.set_name(tensor.name);
  auto* type = proto.mutable_type()->mutable_tensor_type();
  type->set_elem_type(data_type_of(tensor.dtype));
  if (!tensor.shape) return;
  auto* shape = type->mutable_shape();
  for (std::size_t i = 0; i < tensor.shape->size(); ++i) {
    auto* dimension = shape->add_dim();
    if (i < tensor.symbols.size() && !tensor.symbols[i].empty()) {
      if (tensor.symbols[i] != "?") dimension->set_dim_param(tensor.symbols[i]);
    } else {
      dimension->set_dim_value((*tensor.shape)[i]);
    }
  }
}

/// Marks the dimensions of outputs that change with an open dimension of the inputs: by its name
/// where they are equal to it, else by "?".
void mark_open_outputs(Graph& graph) {
  for (const auto input : graph.inputs) {
    for (std::size_t i = 0; i < graph.tensor(input).symbols.size(); ++i) {
      const auto symbol = graph.tensor(input).symbols[i];
      if (symbol.empty()) continue;
      const auto extent = (*graph.tensor(input).shape)[i];
      auto other = graph;
      const bool takes_other = bind_dimensions(other, {{symbol, extent + 1}}).has_value();
      if (!takes_other) continue;
      for (const auto output : graph.outputs) {
        auto& tensor = graph.tensor(output);
        const auto& moved = other.tensor(output).shape;
        if (!tensor.shape || !moved || tensor.shape->size() != moved->size()) continue;
        tensor.symbols.resize(tensor.shape->size());
        for (std::size_t d = 0; d < moved->size(); ++d) {
          const auto from = (*tensor.shape)[d];
          if (from == (*moved)[d]) continue;
          tensor.symbols[d] = from == extent && (*moved)[d] == extent + 1 ? symbol : "?";
        }
      }
    }
  }
}

onnx::ModelProto empty_model(const std::string& name) {
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("fleetfit");
  model.set_producer_version(std::string(core::version()));
  auto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(kOpset);
  model.mutable_graph()->set_name(name.empty() ? "graph" : name);
  return model;
}

Result<onnx::ModelProto> to_proto(const Graph& original, ExternalWriter* external) {
  FLEETFIT_ASSIGN(auto lowered, onnx_format::lower(original));
  auto& graph = lowered;
  mark_open_outputs(graph);
  auto model = empty_model(graph.name);
  auto& out = *model.mutable_graph();
  for (const auto& node : graph.nodes) write_node(graph, node, out);
  const auto made_by = producers(graph);
  const Consumers read_by(graph);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const auto& tensor = graph.tensors[t];
    const bool is_output = std::find(graph.outputs.begin(), graph.outputs.end(),
                                     static_cast<TensorId>(t)) != graph.outputs.end();
    if (!tensor.is_constant() || made_by[t] >= 0 || (read_by[t].empty() && !is_output)) continue;
    if (external != nullptr) {
      external->write(tensor, *out.add_initializer());
    } else {
      write_tensor(tensor, *out.add_initializer());
    }
  }
  for (const auto id : graph.inputs) write_value(graph.tensor(id), *out.add_input());
  for (const auto id : graph.outputs) write_value(graph.tensor(id), *out.add_output());
  return model;
}

std::size_t constant_bytes(const Graph& graph) {
  std::size_t sum = 0;
  for (const auto& tensor : graph.tensors) sum += tensor.data ? tensor.data->size_bytes() : 0;
  return sum;
}

Result<onnx::ModelProto> to_one_message(const Graph& graph) {
  if (constant_bytes(graph) > kMostInside) {
    return fail(ErrorCode::unsupported,
                "weights of more than 1.5 GB do not fit into one ONNX message");
  }
  return to_proto(graph, nullptr);
}

// --- Bytes that a model can be mapped from

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

/// The model as bytes in which the data of every initializer begins at a multiple of 64 bytes from
/// the start. Any reader of protobuf messages takes them. Takes the initializers out of `model`.
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

}  // namespace

Result<std::string> export_onnx(const Graph& graph) {
  FLEETFIT_ASSIGN(auto model, to_one_message(graph));
  return model.SerializeAsString();
}

Result<std::string> export_mappable_onnx(const Graph& graph) {
  FLEETFIT_ASSIGN(auto model, to_one_message(graph));
  return serialize_mappable(model);
}

Status export_onnx_file(const Graph& graph, const std::filesystem::path& file,
                        core::Durability durability) {
  if (constant_bytes(graph) <= kMostInside) {
    FLEETFIT_ASSIGN(auto bytes, export_onnx(graph));
    return core::write_file(file, bytes, durability);
  }
  auto data_file = file;
  data_file += ".data";
  ExternalWriter external{.stream = std::ofstream(data_file, std::ios::binary),
                          .location = data_file.filename().string()};
  FLEETFIT_ASSIGN(auto model, to_proto(graph, &external));
  external.stream.close();
  if (!external.stream)
    return fail(ErrorCode::io, fmt::format("{}: cannot be written", data_file.string()));
  return core::write_file(file, model.SerializeAsString(), durability);
}

}  // namespace fleetfit::graph
