#include "graph/quantize/plan.h"

#include <algorithm>
#include <numeric>

#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::quantization {
namespace {

using rewrite::is_plain_float;

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

bool is_float_constant(const Graph& graph, TensorId id) {
  return is_plain_float(graph, id) && graph.tensor(id).is_constant();
}

bool has(const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoTensor;
}

/// No bias, or a constant one.
bool has_fixed_bias(const Graph& graph, const Node& node) {
  return !has(node, 2) || is_float_constant(graph, node.inputs[2]);
}

/// Nodes on other numbers than floats, on constants alone, or with results that nobody can tell
/// apart from them, stay as they are.
bool works_on_floats(const Graph& graph, const Node& node) {
  const auto data = data_inputs(graph, node);
  const auto is_float = [&](TensorId id) { return is_plain_float(graph, id); };
  return std::all_of(data.begin(), data.end(),
                     [&](std::size_t i) { return has(node, i) && is_float(node.inputs[i]); }) &&
         std::any_of(data.begin(), data.end(),
                     [&](std::size_t i) { return !graph.tensor(node.inputs[i]).is_constant(); }) &&
         std::all_of(node.outputs.begin(), node.outputs.end(),
                     [&](TensorId id) { return id == kNoTensor || is_float(id); });
}

Role role_of(const Graph& graph, const Node& node) {
  const auto& entry = traits(node.op);
  const Role role = entry.quantized_of != nullptr
                        ? entry.quantized_of(node.op, graph, node)
                        : entry.quantized.value_or(entry.only_moves ? Role::moves : Role::floats);
  if (role != Role::floats && !works_on_floats(graph, node)) return Role::floats;
  return role;
}

}  // namespace

Role role_of_layer(const Operator&, const Graph& graph, const Node& node) {
  return has_weights(graph, node) && has_fixed_bias(graph, node) ? Role::computes : Role::floats;
}

bool has_weights(const Graph& graph, const Node& node) {
  return traits(node.op).is_layer && is_float_constant(graph, node.inputs[1]) &&
         graph.tensor(node.inputs[1]).shape->size() >= 2;
}

std::vector<std::size_t> data_inputs(const Graph& graph, const Node& node) {
  const auto& op = node.op;
  const bool takes_several = std::holds_alternative<Elementwise>(op) ||
                             std::holds_alternative<Concat>(op) ||
                             std::holds_alternative<Stack>(op) ||
                             (std::holds_alternative<MatMul>(op) && !has_weights(graph, node));
  std::vector<std::size_t> positions(takes_several ? node.inputs.size()
                                                   : std::min<std::size_t>(1, node.inputs.size()));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

Plan::Plan(const Graph& graph, const std::vector<bool>& keep_float)
    : parent_(graph.tensors.size()), quantized_(graph.tensors.size(), false) {
  std::iota(parent_.begin(), parent_.end(), 0);
  std::vector<bool> moved(graph.tensors.size(), false);
  std::vector<std::vector<TensorId>> touched;  // by each node, in whole numbers
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    roles_.push_back(keep_float[n] ? Role::floats : role_of(graph, node));
    auto& ids = touched.emplace_back();
    if (roles_[n] == Role::floats) continue;
    for (const auto i : data_inputs(graph, node)) ids.push_back(node.inputs[i]);
    for (const auto id : node.outputs) {
      if (id == kNoTensor) continue;
      ids.push_back(id);
      moved[slot(id)] = roles_[n] == Role::moves;
    }
    if (roles_[n] != Role::moves) continue;
    for (const auto id : ids) join(ids.front(), id);
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (roles_[n] != Role::computes) continue;
    for (const auto id : touched[n]) quantized_[slot(group(id))] = true;
  }
  for (TensorId id = 0; slot(id) < graph.tensors.size(); ++id) {
    if (!is_quantized(id)) continue;
    if (graph.tensor(id).is_constant()) {
      constants_.push_back(id);
    } else if (!moved[slot(id)]) {
      sources_.push_back(id);
    }
  }
}

TensorId Plan::group(TensorId id) const {
  while (parent_[slot(id)] != id) id = parent_[slot(id)];
  return id;
}

bool Plan::is_quantized(TensorId id) const {
  return id != kNoTensor && quantized_[slot(group(id))];
}

void Plan::join(TensorId a, TensorId b) {
  const auto [first, second] = std::minmax({group(a), group(b)});
  parent_[slot(second)] = first;
}

}  // namespace fleetfit::graph::quantization
