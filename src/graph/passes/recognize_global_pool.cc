#include <algorithm>

#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

std::optional<PoolKind> pool_kind(ReduceKind kind) {
  if (kind == ReduceKind::mean) return PoolKind::average;
  if (kind == ReduceKind::max) return PoolKind::max;
  return std::nullopt;
}

// The layout in which `axes` are all the spatial dimensions of an image.
std::optional<Layout> layout_reduced(const Ints& axes, std::size_t rank) {
  if (rank < 4 || axes.size() != rank - 2) return std::nullopt;
  Ints sorted;
  for (const auto axis : axes) sorted.push_back(normalized_axis(axis, rank));
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] != sorted[i - 1] + 1) return std::nullopt;
  }
  if (sorted.front() == 2) return Layout::nchw;
  if (sorted.front() == 1) return Layout::nhwc;
  return std::nullopt;
}

}  // namespace

Result<bool> recognize_global_pool(Graph& graph) {
  bool changed = false;
  for (auto& node : graph.nodes) {
    const auto* reduce = std::get_if<Reduce>(&node.op);
    if (reduce == nullptr || !reduce->keep_dims) continue;
    const auto& x = graph.tensor(node.inputs.front());
    const auto kind = pool_kind(reduce->kind);
    if (!kind || !x.shape || !(is_float(x.dtype) || x.quantization)) continue;
    const auto layout = layout_reduced(reduce->axes, x.shape->size());
    if (!layout) continue;
    node.op = GlobalPool{*kind, *layout};
    changed = true;
  }
  return changed;
}

}  // namespace fleetfit::graph::rewrite
