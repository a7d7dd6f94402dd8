#include "fleetfit/graph/export.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "fleetfit/core/file.h"
#include "fleetfit/core/version.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/onnx/lower_to_onnx.h"
#include "graph/onnx/mappable_model.h"
#include "graph/onnx/onnx_constants.h"

namespace fleetfit::graph {
namespace {

using onnx_format::data_type_of;

constexpr int kIrVersion = 8;
constexpr int kOpset = 17;

// Protobuf files end at 2 GiB.
constexpr std::size_t kMostInside = 1'500'000'000;

// --- Attributes ---

void set(onnx::NodeProto& node, const char* name, std::int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

void set(onnx::NodeProto& node, const char* name, float value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::FLOAT);
  attribute->set_f(value);
}

void set(onnx::NodeProto& node, const char* name, const char* value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

void set(onnx::NodeProto& node, const char* name, const Ints& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const auto value : values) attribute->add_ints(value);
}

void set(onnx::NodeProto& node, const char* name, bool value) {
  set(node, name, std::int64_t{value ? 1 : 0});
}

// --- Tensors ---

void describe_tensor(const Tensor& tensor, onnx::TensorProto& proto) {
  proto.set_name(tensor.name);
  proto.set_data_type(data_type_of(tensor.dtype));
  for (const auto extent : *tensor.shape) proto.add_dims(extent);
}

void write_tensor(const Tensor& tensor, onnx::TensorProto& proto) {
  describe_tensor(tensor, proto);
  std::string& raw = *proto.mutable_raw_data();
  raw.resize(tensor.data->size_bytes());
  tensor.data->copy_to(std::as_writable_bytes(std::span(raw)));
}

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

void set_window(const Window& window, onnx::NodeProto& node) {
  set(node, "kernel_shape", window.kernel);
  set(node, "strides", window.strides);
  if (window.auto_pad == AutoPad::explicit_pads) {
    Ints pads = window.pads_begin;
    pads.insert(pads.end(), window.pads_end.begin(), window.pads_end.end());
    set(node, "pads", pads);
  } else {
    set(node, "auto_pad",
        window.auto_pad == AutoPad::same_upper   ? "SAME_UPPER"
        : window.auto_pad == AutoPad::same_lower ? "SAME_LOWER"
                                                 : "VALID");
  }
}

/// Writes attributes, and what ONNX keeps in further inputs.
class OperatorWriter {
 public:
  OperatorWriter(onnx::GraphProto& graph, onnx::NodeProto& node) : graph_(graph), node_(node) {}

  void operator()(const Conv& op) {
    set_window(op.window, node_);
    set(node_, "dilations", op.window.dilations);
    set(node_, "group", op.groups);
  }
  void operator()(const ConvTranspose& op) {
    set_window(op.window, node_);
    set(node_, "dilations", op.window.dilations);
    set(node_, "group", op.groups);
    set(node_, "output_padding", op.output_padding);
    if (!op.output_shape.empty()) set(node_, "output_shape", op.output_shape);
  }
  void operator()(const Pool& op) {
    set_window(op.window, node_);
    set(node_, "ceil_mode", op.window.ceil_mode);
    if (op.kind == PoolKind::average) set(node_, "count_include_pad", op.count_include_pad);
    if (op.kind == PoolKind::max) set(node_, "dilations", op.window.dilations);
  }
  void operator()(const Gemm& op) {
    set(node_, "alpha", op.alpha);
    set(node_, "beta", op.beta);
    set(node_, "transA", op.trans_a);
    set(node_, "transB", op.trans_b);
  }
  void operator()(const BatchNorm& op) { set(node_, "epsilon", op.epsilon); }
  void operator()(const InstanceNorm& op) { set(node_, "epsilon", op.epsilon); }
  void operator()(const LayerNorm& op) {
    set(node_, "axis", op.axis);
    set(node_, "epsilon", op.epsilon);
  }
  void operator()(const Lrn& op) {
    set(node_, "size", op.size);
    set(node_, "alpha", op.alpha);
    set(node_, "beta", op.beta);
    set(node_, "bias", op.bias);
  }
  void operator()(const LpNormalization& op) {
    set(node_, "axis", op.axis);
    set(node_, "p", op.p);
  }
  void operator()(const Softmax& op) { set(node_, "axis", op.axis); }
  void operator()(const Activate& op) {
    const auto& f = op.function;
    switch (f.kind) {
      case ActivationKind::clip:
        add_bound("min", f.alpha, std::numeric_limits<float>::lowest());
        add_bound("max", f.beta, std::numeric_limits<float>::max());
        break;
      case ActivationKind::leaky_relu:
      case ActivationKind::elu:
        set(node_, "alpha", f.alpha);
        break;
      case ActivationKind::hard_sigmoid:
        set(node_, "alpha", f.alpha);
        set(node_, "beta", f.beta);
        break;
      case ActivationKind::selu:
        set(node_, "alpha", f.alpha);
        set(node_, "gamma", f.beta);
        break;
      default:
        break;
    }
  }
  void operator()(const Cast& op) { set(node_, "to", std::int64_t{data_type_of(op.to)}); }
  void operator()(const QuantizeLinear& op) { set(node_, "axis", op.axis); }
  void operator()(const DequantizeLinear& op) { set(node_, "axis", op.axis); }
  void operator()(const Concat& op) { set(node_, "axis", op.axis); }
  void operator()(const Split& op) { set(node_, "axis", op.axis); }
  void operator()(const Pad& op) {
    set(node_, "mode",
        op.mode == PadMode::constant ? "constant"
        : op.mode == PadMode::edge   ? "edge"
                                     : "reflect");
  }
  void operator()(const Resize& op) {
    constexpr std::array kModes = {"nearest", "linear", "cubic"};
    constexpr std::array kCoordinates = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                         "asymmetric"};
    constexpr std::array kNearest = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    set(node_, "mode", kModes[static_cast<std::size_t>(op.mode)]);
    set(node_, "coordinate_transformation_mode",
        kCoordinates[static_cast<std::size_t>(op.coordinates)]);
    set(node_, "nearest_mode", kNearest[static_cast<std::size_t>(op.nearest)]);
    set(node_, "cubic_coeff_a", op.cubic_coefficient);
  }
  void operator()(const Transpose& op) {
    if (!op.perm.empty()) set(node_, "perm", op.perm);
  }
  void operator()(const Reshape& op) {
    if (op.allow_zero) set(node_, "allowzero", true);
  }
  void operator()(const Flatten& op) { set(node_, "axis", op.axis); }
  void operator()(const Gather& op) { set(node_, "axis", op.axis); }
  void operator()(const DepthToSpace& op) {
    set(node_, "blocksize", op.block);
    set(node_, "mode", op.column_row_depth ? "CRD" : "DCR");
  }
  void operator()(const SpaceToDepth& op) { set(node_, "blocksize", op.block); }
  void operator()(const Reduce& op) {
    set(node_, "keepdims", op.keep_dims);
    if (op.axes.empty()) return;
    if (op.kind == ReduceKind::sum) {
      add_constant("axes", DType::i64, {static_cast<std::int64_t>(op.axes.size())},
                   TensorData::copy(op.axes));
    } else {
      set(node_, "axes", op.axes);
    }
  }
  void operator()(const ArgExtreme& op) {
    set(node_, "axis", op.axis);
    set(node_, "keepdims", op.keep_dims);
    set(node_, "select_last_index", op.select_last);
  }
  void operator()(const TopK& op) {
    set(node_, "axis", op.axis);
    set(node_, "largest", op.largest);
    set(node_, "sorted", op.sorted);
  }
  void operator()(const ConstantOfShape& op) {
    auto* attribute = node_.add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    const Recipe one{
        .dtype = op.dtype == DType::boolean ? DType::u8 : op.dtype, .count = 1, .center = op.value};
    write_tensor({.dtype = op.dtype, .shape = Shape{1}, .data = TensorData::generate(one)},
                 *attribute->mutable_t());
  }
  void operator()(const ShapeOf& op) {
    if (op.start != 0) set(node_, "start", op.start);
    if (op.end) set(node_, "end", *op.end);
  }
  template <class Op>
  void operator()(const Op&) {}

 private:
  void add_constant(const char* role, DType dtype, Shape shape, TensorData data) {
    const auto name = fmt::format("{}/{}", node_.output(0), role);
    write_tensor({.name = name, .dtype = dtype, .shape = std::move(shape), .data = std::move(data)},
                 *graph_.add_initializer());
    node_.add_input(name);
  }

  void add_bound(const char* role, float value, float unbounded) {
    if (value == unbounded) {
      node_.add_input("");
    } else {
      add_constant(role, DType::f32, {}, TensorData::copy(std::vector<float>{value}));
    }
  }

  onnx::GraphProto& graph_;
  onnx::NodeProto& node_;
};

void write_node(const Graph& graph, const Node& node, onnx::GraphProto& out) {
  auto& proto = *out.add_node();
  proto.set_name(node.name);
  proto.set_op_type(std::string(type_name(node.op)));
  for (const auto id : node.inputs) proto.add_input(id == kNoTensor ? "" : graph.tensor(id).name);
  for (const auto id : node.outputs) proto.add_output(id == kNoTensor ? "" : graph.tensor(id).name);
  if (std::holds_alternative<Constant>(node.op)) {
    auto* attribute = proto.add_attribute();
    attribute->set_name("value");
    attribute->set_type(onnx::AttributeProto::TENSOR);
    write_tensor(graph.tensor(node.outputs[0]), *attribute->mutable_t());
    return;
  }
  OperatorWriter writer(out, proto);
  std::visit([&](const auto& op) { writer(op); }, node.op);
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

}  // namespace

Result<std::string> export_onnx(const Graph& graph) {
  FLEETFIT_ASSIGN(auto model, to_one_message(graph));
  return model.SerializeAsString();
}

Result<std::string> export_mappable_onnx(const Graph& graph) {
  FLEETFIT_ASSIGN(auto model, to_one_message(graph));
  return onnx_format::serialize_mappable(model);
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
