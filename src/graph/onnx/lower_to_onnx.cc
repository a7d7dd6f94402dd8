#include "graph/onnx/lower_to_onnx.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fleetfit/graph/operator_facts.h"
#include "fleetfit/graph/passes.h"
#include "fleetfit/graph/shape_inference.h"
#include "graph/onnx/lowering.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph::onnx_format {
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
    std::vector<TensorId> inputs{graph_.add_tensor({.name = tensor.name + ".scale",
                                                    .dtype = DType::f32,
                                                    .shape = shape,
                                                    .data = TensorData::copy(q.scales)})};
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
