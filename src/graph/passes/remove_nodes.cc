#include <algorithm>

#include "graph/operators/traits.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

bool drop_unread_nodes(Graph& graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  for (const auto id : graph.outputs) needed[slot(id)] = true;
  std::vector<bool> live(graph.nodes.size());
  for (std::size_t n = live.size(); n-- > 0;) {
    const auto& node = graph.nodes[n];
    live[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](TensorId id) { return id != kNoTensor && needed[slot(id)]; });
    if (!live[n]) continue;
    for (const auto id : node.inputs) {
      if (id != kNoTensor) needed[slot(id)] = true;
    }
  }
  std::size_t next = 0;
  return std::erase_if(graph.nodes, [&](const Node&) { return !live[next++]; }) > 0;
}

std::vector<bool> tensors_in_use(const Graph& graph) {
  std::vector<bool> used(graph.tensors.size(), false);
  const auto mark = [&](const std::vector<TensorId>& ids) {
    for (const auto id : ids) {
      if (id != kNoTensor) used[slot(id)] = true;
    }
  };
  mark(graph.inputs);
  mark(graph.outputs);
  for (const auto& node : graph.nodes) {
    mark(node.inputs);
    mark(node.outputs);
  }
  return used;
}

bool drop_unused_tensors(Graph& graph) {
  const auto used = tensors_in_use(graph);
  if (std::find(used.begin(), used.end(), false) == used.end()) return false;
  std::vector<TensorId> new_id(graph.tensors.size(), kNoTensor);
  TensorId kept = 0;
  for (std::size_t t = 0; t < used.size(); ++t) {
    if (used[t]) new_id[t] = kept++;
  }
  std::size_t next = 0;
  std::erase_if(graph.tensors, [&](const Tensor&) { return !used[next++]; });
  const auto renumber = [&](std::vector<TensorId>& ids) {
    for (auto& id : ids) {
      if (id != kNoTensor) id = new_id[slot(id)];
    }
  };
  renumber(graph.inputs);
  renumber(graph.outputs);
  for (auto& node : graph.nodes) {
    renumber(node.inputs);
    renumber(node.outputs);
  }
  return true;
}

}  // namespace

Result<bool> remove_dead_nodes(Graph& graph) {
  const bool nodes = drop_unread_nodes(graph);
  const bool tensors = drop_unused_tensors(graph);
  return nodes || tensors;
}

Result<bool> remove_identities(Graph& graph) {
  return rewrite_nodes(graph, [&](Rewriter& rewriter, int n) {
    const auto& node = rewriter.node(n);
    if (node.inputs.empty() || node.inputs.front() == kNoTensor || node.activation) return;
    const auto hands_on = traits(node.op).hands_on;
    if (hands_on == nullptr || !hands_on(node.op, graph, node)) return;
    if (rewriter.only_first_output_needed(n)) rewriter.bypass(n, node.inputs.front());
  });
}

}  // namespace fleetfit::graph::rewrite
