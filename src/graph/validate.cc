#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/graph/graph.h"
#include "graph/arity.h"

namespace fleetfit::graph {
namespace {

constexpr std::size_t kAny = 1'000'000;

/// How many inputs and outputs an operator takes; the first `least_inputs` may not be left out.
struct Arity {
  std::size_t least_inputs = 1;
  std::size_t most_inputs = 1;
  std::size_t most_outputs = 1;
};

struct ArityOf {
  Arity operator()(const Unknown&) const { return {0, kAny, kAny}; }
  Arity operator()(const Conv&) const { return {2, 3}; }
  Arity operator()(const ConvTranspose&) const { return {2, 3}; }
  Arity operator()(const Gemm&) const { return {2, 3}; }
  Arity operator()(const MatMul&) const { return {2, 2}; }
  Arity operator()(const MultiHeadAttention&) const { return {11, 11}; }
  Arity operator()(const BatchNorm&) const { return {5, 5}; }
  Arity operator()(const InstanceNorm&) const { return {3, 3}; }
  Arity operator()(const LayerNorm&) const { return {2, 3, 3}; }
  Arity operator()(const PRelu&) const { return {2, 2}; }
  Arity operator()(const Pool&) const { return {1, 1, 2}; }
  Arity operator()(const Elementwise& op) const {
    const bool any_number = op.kind == ElementwiseKind::min || op.kind == ElementwiseKind::max ||
                            op.kind == ElementwiseKind::sum || op.kind == ElementwiseKind::mean;
    return any_number ? Arity{1, kAny} : Arity{2, 2};
  }
  Arity operator()(const Where&) const { return {3, 3}; }
  Arity operator()(const QuantizeLinear&) const { return {2, 3}; }
  Arity operator()(const DequantizeLinear&) const { return {2, 3}; }
  Arity operator()(const Concat&) const { return {1, kAny}; }
  Arity operator()(const Split&) const { return {1, 2, kAny}; }
  Arity operator()(const Slice&) const { return {3, 5}; }
  Arity operator()(const Pad&) const { return {2, 3}; }
  Arity operator()(const Resize&) const { return {1, 4}; }
  Arity operator()(const Reshape&) const { return {2, 2}; }
  Arity operator()(const Squeeze&) const { return {1, 2}; }
  Arity operator()(const Unsqueeze&) const { return {2, 2}; }
  Arity operator()(const Expand&) const { return {2, 2}; }
  Arity operator()(const Tile&) const { return {2, 2}; }
  Arity operator()(const Gather&) const { return {2, 2}; }
  Arity operator()(const Stack&) const { return {1, kAny}; }
  Arity operator()(const Unstack&) const { return {1, 1, kAny}; }
  Arity operator()(const SpaceToBatch&) const { return {3, 3}; }
  Arity operator()(const BatchToSpace&) const { return {3, 3}; }
  Arity operator()(const TopK&) const { return {2, 2, 2}; }
  Arity operator()(const Constant&) const { return {0, 0}; }
  Arity operator()(const Range&) const { return {3, 3}; }
  Arity operator()(const Dropout&) const { return {1, 1, 2}; }
  template <class Op>
  Arity operator()(const Op&) const {
    return {};
  }
};

}  // namespace

Status check_arity(const Node& node) {
  const auto arity = std::visit(ArityOf{}, node.op);
  const auto inputs = node.inputs.size();
  if (inputs < arity.least_inputs || inputs > arity.most_inputs) {
    return refuse(fmt::format("{} has {} inputs", describe(node), inputs));
  }
  for (std::size_t i = 0; i < arity.least_inputs; ++i) {
    if (node.inputs[i] == kNoTensor)
      return refuse(fmt::format("{} lacks input {}", describe(node), i));
  }
  if (node.outputs.size() > arity.most_outputs) {
    return refuse(fmt::format("{} has {} outputs", describe(node), node.outputs.size()));
  }
  const bool gives = !node.outputs.empty() && node.outputs[0] != kNoTensor;
  if (!gives && !std::holds_alternative<Unknown>(node.op) && node.outputs.size() < 2) {
    return refuse(fmt::format("{} has no output", describe(node)));
  }
  return {};
}

namespace {

bool in_range(const Graph& graph, TensorId id) {
  return id >= 0 && static_cast<std::size_t>(id) < graph.tensors.size();
}

Status check_ids(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const auto id : *ids) {
        if (id != kNoTensor && !in_range(graph, id)) {
          return refuse(
              fmt::format("{} names tensor {}, which does not exist", describe(node), id));
        }
      }
    }
  }
  for (const auto* ids : {&graph.inputs, &graph.outputs}) {
    for (const auto id : *ids) {
      if (!in_range(graph, id))
        return refuse(fmt::format("the graph names tensor {}, which does not exist", id));
    }
  }
  return {};
}

Status check_quantization(const Tensor& tensor) {
  if (!tensor.quantization) return {};
  const auto& q = *tensor.quantization;
  if (q.scales.empty() || q.scales.size() != q.zero_points.size()) {
    return refuse(fmt::format("tensor '{}' has {} scales and {} zero points", tensor.name,
                              q.scales.size(), q.zero_points.size()));
  }
  if (!q.axis) {
    if (q.scales.size() != 1)
      return refuse(fmt::format("tensor '{}' has {} scales and no axis for them", tensor.name,
                                q.scales.size()));
    return {};
  }
  if (!tensor.shape) return {};
  const bool fits = *q.axis >= 0 && static_cast<std::size_t>(*q.axis) < tensor.shape->size() &&
                    (*tensor.shape)[static_cast<std::size_t>(*q.axis)] ==
                        static_cast<std::int64_t>(q.scales.size());
  if (!fits)
    return refuse(fmt::format("tensor '{}' of {} has {} scales along axis {}", tensor.name,
                              to_string(*tensor.shape), q.scales.size(), *q.axis));
  return {};
}

Status check_tensor(const Tensor& tensor) {
  if (tensor.shape) {
    const auto count = element_count(*tensor.shape);
    if (!count) return core::within(fmt::format("tensor '{}'", tensor.name), count.error());
    if (tensor.data && size_of(tensor.dtype) > 0 &&
        tensor.data->size_bytes() != static_cast<std::size_t>(*count) * size_of(tensor.dtype)) {
      return refuse(fmt::format("tensor '{}' of {} {} holds {} bytes", tensor.name,
                                to_string(*tensor.shape), to_string(tensor.dtype),
                                tensor.data->size_bytes()));
    }
  } else if (tensor.data) {
    return refuse(fmt::format("constant '{}' has no shape", tensor.name));
  }
  return check_quantization(tensor);
}

/// Each tensor made once, before it is read.
Status check_order(const Graph& graph) {
  std::vector<bool> there(graph.tensors.size());
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) there[t] = graph.tensors[t].is_constant();
  for (const auto id : graph.inputs) {
    if (there[static_cast<std::size_t>(id)])
      return refuse(fmt::format("input '{}' is a constant or given twice", graph.tensor(id).name));
    there[static_cast<std::size_t>(id)] = true;
  }
  std::vector<bool> made(graph.tensors.size());
  for (const auto& node : graph.nodes) {
    for (const auto id : node.inputs) {
      if (id != kNoTensor && !there[static_cast<std::size_t>(id)]) {
        return refuse(fmt::format("{} reads tensor '{}' before it is made", describe(node),
                                  graph.tensor(id).name));
      }
    }
    const bool constant = std::holds_alternative<Constant>(node.op);
    for (const auto id : node.outputs) {
      if (id == kNoTensor) continue;
      const auto t = static_cast<std::size_t>(id);
      if (made[t] || there[t] != constant) {
        return refuse(fmt::format("{} makes tensor '{}', which {}", describe(node),
                                  graph.tensors[t].name,
                                  there[t] ? "is made already" : "holds no data"));
      }
      there[t] = made[t] = true;
    }
  }
  for (const auto id : graph.outputs) {
    if (!there[static_cast<std::size_t>(id)])
      return refuse(fmt::format("output '{}' is made by nothing", graph.tensor(id).name));
  }
  return {};
}

}  // namespace

Status validate(const Graph& graph) {
  FLEETFIT_TRY(check_ids(graph));
  for (const auto& tensor : graph.tensors) {
    FLEETFIT_TRY(check_tensor(tensor));
  }
  for (const auto& node : graph.nodes) {
    FLEETFIT_TRY(check_arity(node));
  }
  return check_order(graph);
}

}  // namespace fleetfit::graph
