#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/graph/graph.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph {
Status check_arity(const Node& node) {
  const auto& entry = traits(node.op);
  const auto arity = entry.arity_of != nullptr ? entry.arity_of(node.op) : entry.arity;
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
