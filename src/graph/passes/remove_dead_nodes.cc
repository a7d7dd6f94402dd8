#include <algorithm>

#include "graph/passes/all_passes.h"

namespace fleetfit::graph::rewrite {
namespace {

std::size_t slot(TensorId id) { return static_cast<std::size_t>(id); }

bool drop_unread_nodes(Graph& graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  for (const auto id : graph.outputs) needed[slot(id)] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool live = std::any_of(node->outputs.begin(), node->outputs.end(),
                                  [&](TensorId id) { return id != kNoTensor && needed[slot(id)]; });
    if (!live) continue;
    for (const auto id : node->inputs) {
      if (id != kNoTensor) needed[slot(id)] = true;
    }
    kept.push_back(std::move(*node));
  }
  const bool changed = kept.size() < graph.nodes.size();
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
  return changed;
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
  std::vector<TensorId> new_id(graph.tensors.size(), kNoTensor);
  std::vector<Tensor> kept;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (!used[t]) continue;
    new_id[t] = static_cast<TensorId>(kept.size());
    kept.push_back(std::move(graph.tensors[t]));
  }
  const bool changed = kept.size() < graph.tensors.size();
  graph.tensors = std::move(kept);
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
  return changed;
}

}  // namespace

Result<bool> remove_dead_nodes(Graph& graph) {
  const bool nodes = drop_unread_nodes(graph);
  const bool tensors = drop_unused_tensors(graph);
  return nodes || tensors;
}

}  // namespace fleetfit::graph::rewrite
