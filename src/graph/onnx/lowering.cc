#include "graph/onnx/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph::onnx_format {
namespace {

/// y = x * (1 + z) / 2
void half_of_one_more(const Node& near, TensorId x, TensorId z, TensorId y, Lowering& out) {
  const auto one_more = out.step(near, "one_more", Elementwise{ElementwiseKind::add},
                                 {z, out.scalar(near, "one", 1)});
  const auto product = out.step(near, "product", Elementwise{ElementwiseKind::mul}, {x, one_more});
  out.emit(near, "gelu", Elementwise{ElementwiseKind::mul},
           {product, out.scalar(near, "half", 0.5F)}, y);
}

}  // namespace

void lower_activation(const Node& near, const Activation& activation, TensorId x, TensorId y,
                      Lowering& out) {
  switch (activation.kind) {
    case ActivationKind::silu:
      return out.emit(near, "silu", Elementwise{ElementwiseKind::mul},
                      {x, out.step(near, "sigmoid", Activate{kSigmoid}, {x})}, y);
    case ActivationKind::mish: {
      const auto soft = out.step(near, "softplus", Activate{{ActivationKind::softplus}}, {x});
      return out.emit(near, "mish", Elementwise{ElementwiseKind::mul},
                      {x, out.step(near, "tanh", Activate{kTanh}, {soft})}, y);
    }
    case ActivationKind::gelu: {
      const auto inner = out.step(near, "over_sqrt2", Elementwise{ElementwiseKind::div},
                                  {x, out.scalar(near, "sqrt2", std::numbers::sqrt2_v<float>)});
      return half_of_one_more(near, x, out.step(near, "erf", Unary{UnaryKind::erf}, {inner}), y,
                              out);
    }
    case ActivationKind::gelu_tanh: {
      // tanh(sqrt(2/pi) * (x + 0.044715 x^3))
      const auto cube = out.step(near, "cube", Elementwise{ElementwiseKind::pow},
                                 {x, out.scalar(near, "three", 3)});
      const auto small = out.step(near, "small", Elementwise{ElementwiseKind::mul},
                                  {cube, out.scalar(near, "c", 0.044715F)});
      const auto sum = out.step(near, "sum", Elementwise{ElementwiseKind::add}, {x, small});
      const auto factor = static_cast<float>(std::sqrt(2 / std::numbers::pi));
      const auto inner = out.step(near, "inner", Elementwise{ElementwiseKind::mul},
                                  {sum, out.scalar(near, "factor", factor)});
      return half_of_one_more(near, x, out.step(near, "tanh", Activate{kTanh}, {inner}), y, out);
    }
    default:
      return out.emit(near, "activation", Activate{activation}, {x}, y);
  }
}

TensorId Lowering::fresh(const Node& near, std::string_view role, DType dtype) {
  return graph_.add_tensor({.name = fmt::format("{}.{}", near.name, role), .dtype = dtype});
}

TensorId Lowering::scalar(const Node& near, std::string_view role, float value) {
  return graph_.add_floats(fmt::format("{}.{}", near.name, role), {}, {value});
}

TensorId Lowering::ints(const Node& near, std::string_view role, const Ints& values) {
  return graph_.add_ints(fmt::format("{}.{}", near.name, role), values);
}

void Lowering::emit(const Node& near, std::string_view role, Operator op,
                    std::vector<TensorId> inputs, TensorId output) {
  graph_.nodes.push_back({.name = fmt::format("{}.{}", near.name, role),
                          .op = std::move(op),
                          .inputs = std::move(inputs),
                          .outputs = {output}});
}

TensorId Lowering::step(const Node& near, std::string_view role, Operator op,
                        std::vector<TensorId> inputs) {
  const auto result = fresh(near, role);
  emit(near, role, std::move(op), std::move(inputs), result);
  return result;
}

Status Lowering::keep(Node node) {
  graph_.nodes.push_back(std::move(node));
  return {};
}

Status Lowering::keep_narrowed(Node node, std::size_t output, DType wanted) {
  const auto wide = fresh(node, "indices", DType::i64);
  const auto result = std::exchange(node.outputs[output], wide);
  const Node near{.name = node.name};
  FLEETFIT_TRY(keep(std::move(node)));
  emit(near, "narrow", Cast{wanted}, {wide}, result);
  return {};
}

namespace {

bool is_image_last(const Node& node) { return layout_of(node.op) == Layout::nhwc; }

/// Rewrites nodes one after the other into a new list.
class GraphLowering {
 public:
  explicit GraphLowering(Graph graph) : graph_(std::move(graph)) {}

  Result<Graph> run() {
    auto nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (auto& node : nodes) {
      FLEETFIT_TRY(lower(std::move(node)));
    }
    for (auto& tensor : graph_.tensors) tensor.quantization.reset();
    make_names_unique();
    FLEETFIT_TRY(infer_shapes(graph_));
    return std::move(graph_);
  }

 private:
  // --- One node ---

  Status lower(Node node) {
    if (const auto* unknown = std::get_if<Unknown>(&node.op)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{} cannot be written as ONNX: {}", describe(node), unknown->reason));
    }
    FLEETFIT_TRY(dequantize_operands(node));
    widen_counts(node);
    if (node.activation) {
      const auto plain = out_.fresh(node, "plain");
      const auto activated = std::exchange(node.outputs[0], plain);
      const auto activation = std::exchange(node.activation, Activation{});
      const Node near{.name = node.name};
      FLEETFIT_TRY(write_out(std::move(node)));
      lower_activation(near, activation, plain, activated, out_);
    } else if (auto ok = write_out(std::move(node)); !ok) {
      return ok;
    }
    // Results are quantized after the node that made them.
    for (auto& late : std::exchange(late_, {})) graph_.nodes.push_back(std::move(late));
    return {};
  }

  // --- Quantized tensors ---

  std::vector<TensorId> quantization_inputs(const Tensor& tensor) {
    const auto& q = *tensor.quantization;
    const auto shape = q.axis ? Shape{static_cast<std::int64_t>(q.scales.size())} : Shape{};
    std::vector<TensorId> inputs{graph_.add_floats(tensor.name + ".scale", shape, q.scales)};
    if (tensor.dtype == DType::i32) return inputs;  // ONNX wants no zero point there
    std::vector<std::byte> points;
    for (const auto point : q.zero_points) points.push_back(static_cast<std::byte>(point));
    inputs.push_back(graph_.add_tensor({.name = tensor.name + ".zero_point",
                                        .dtype = tensor.dtype,
                                        .shape = shape,
                                        .data = TensorData::own(std::move(points))}));
    return inputs;
  }

  Status check_quantized(const Node& node, const Tensor& tensor) const {
    const bool eight_bits = tensor.dtype == DType::i8 || tensor.dtype == DType::u8;
    const auto& zeros = tensor.quantization->zero_points;
    const bool bias = tensor.dtype == DType::i32 &&
                      std::all_of(zeros.begin(), zeros.end(), [](auto z) { return z == 0; });
    if (eight_bits || bias) return {};
    return fail(ErrorCode::unsupported,
                fmt::format("{}: tensor '{}' is quantized to {}, which ONNX cannot express",
                            describe(node), tensor.name, to_string(tensor.dtype)));
  }

  /// The real values of a quantized tensor, made once.
  TensorId real(TensorId id) {
    if (const auto found = real_.find(id); found != real_.end()) return found->second;
    const auto tensor = graph_.tensor(id);
    const Node near{.name = tensor.name};
    const auto result = out_.fresh(near, "real");
    std::vector<TensorId> inputs{id};
    for (const auto extra : quantization_inputs(tensor)) inputs.push_back(extra);
    out_.emit(near, "dequantize", DequantizeLinear{tensor.quantization->axis.value_or(1)},
              std::move(inputs), result);
    real_.emplace(id, result);
    return result;
  }

  Status dequantize_operands(Node& node) {
    for (auto& id : node.inputs) {
      if (id == kNoTensor || !graph_.tensor(id).quantization) continue;
      FLEETFIT_TRY(check_quantized(node, graph_.tensor(id)));
      id = real(id);
    }
    for (auto& id : node.outputs) {
      if (id == kNoTensor || !graph_.tensor(id).quantization ||
          std::holds_alternative<Constant>(node.op))
        continue;
      const auto tensor = graph_.tensor(id);
      FLEETFIT_TRY(check_quantized(node, tensor));
      const auto stored = std::exchange(id, out_.fresh(Node{.name = tensor.name}, "exact"));
      std::vector<TensorId> inputs{id};
      for (const auto extra : quantization_inputs(tensor)) inputs.push_back(extra);
      late_.push_back({.name = tensor.name + ".quantize",
                       .op = QuantizeLinear{tensor.quantization->axis.value_or(1)},
                       .inputs = std::move(inputs),
                       .outputs = {stored}});
    }
    return {};
  }

  // --- Whole numbers ---

  void widen_counts(Node& node) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!traits(node.op).onnx_counts.contains(i) || node.inputs[i] == kNoTensor) continue;
      if (graph_.tensor(node.inputs[i]).dtype != DType::i32) continue;
      const auto values = constant_ints(graph_, node.inputs[i]);
      const auto role = fmt::format("input{}", i);
      if (values) {
        node.inputs[i] = out_.ints(node, role, *values);
      } else {
        node.inputs[i] = out_.step(node, role, Cast{DType::i64}, {node.inputs[i]});
        graph_.tensor(node.inputs[i]).dtype = DType::i64;
      }
    }
  }

  Status write_out(Node node) {
    const auto lower = traits(node.op).lower_onnx;
    if (lower == nullptr) return out_.keep(std::move(node));
    const Operator op = node.op;
    return lower(op, node, out_);
  }

  // --- Names ---

  void make_names_unique() {
    std::unordered_set<std::string> used;
    // Inputs and outputs are what users refer to: they keep theirs.
    std::vector<bool> fixed(graph_.tensors.size());
    for (const auto* ids : {&graph_.inputs, &graph_.outputs}) {
      for (const auto id : *ids) {
        const auto t = static_cast<std::size_t>(id);
        if (!graph_.tensors[t].name.empty() && used.insert(graph_.tensors[t].name).second)
          fixed[t] = true;
      }
    }
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      if (fixed[t]) continue;
      auto& name = graph_.tensors[t].name;
      const auto base = name.empty() ? std::string("tensor") : name;
      if (name.empty()) name = base;
      for (int i = 1; !used.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
    }
  }

  Graph graph_;
  Lowering out_{graph_};
  std::unordered_map<TensorId, TensorId> real_;
  std::vector<Node> late_;
};

}  // namespace

Result<Graph> lower(Graph graph) {
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_image_last)) {
    FLEETFIT_TRY(convert_layout(graph, Layout::nchw));
  }
  return GraphLowering(std::move(graph)).run();
}

}  // namespace fleetfit::graph::onnx_format
