#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

bool changes_only_shape(const Operator& op) {
  return std::holds_alternative<Reshape>(op) || std::holds_alternative<Flatten>(op) ||
         std::holds_alternative<Squeeze>(op) || std::holds_alternative<Unsqueeze>(op);
}

// Whether a Transpose leaves the elements in their order because only dimensions of one element
// change places. The first dimension must stay: a batch of one need not be one for ever.
bool keeps_element_order(const Shape& shape, const Ints& perm) {
  if (perm.empty() || perm.front() != 0) return false;
  std::int64_t last = -1;
  for (const auto dimension : perm) {
    if (shape[static_cast<std::size_t>(dimension)] == 1) continue;
    if (dimension < last) return false;
    last = dimension;
  }
  return true;
}

bool acts_as_reshape(const Graph& graph, const Node& node) {
  if (changes_only_shape(node.op)) return true;
  const auto* transpose = std::get_if<Transpose>(&node.op);
  if (transpose == nullptr) return false;
  const auto& shape = graph.tensor(node.inputs.front()).shape;
  return shape && keeps_element_order(*shape, full_perm(*transpose, shape->size()));
}

// What Reshape has to say to go from `from` to `to` at once. The leading extent is copied where
// it stays, so that the batch stays open.
Ints target_shape(const Shape& from, const Shape& to) {
  Ints target = to;
  if (!from.empty() && !to.empty() && from.front() == to.front() && elements(to) > 0)
    target.front() = 0;
  return target;
}

void merge_transposes(Rewriter& rewriter, int first, int second) {
  auto& graph = rewriter.graph();
  const auto x = rewriter.node(first).inputs.front();
  const auto rank = graph.tensor(x).shape->size();
  const auto perm = composed(full_perm(std::get<Transpose>(rewriter.node(first).op), rank),
                             full_perm(std::get<Transpose>(rewriter.node(second).op), rank));
  const auto between = rewriter.node(second).inputs.front();
  const bool cancels = is_identity(perm);
  if (!cancels || !rewriter.bypass(second, x)) {
    if (cancels) rewriter.node(second).op = Identity{};
    if (!cancels) rewriter.node(second).op = Transpose{perm};
    rewriter.set_inputs(second, {x});
  }
  rewriter.remove_unread(between);
}

void merge_reshapes(Rewriter& rewriter, int first, int second) {
  auto& graph = rewriter.graph();
  const auto x = rewriter.node(first).inputs.front();
  const auto between = rewriter.node(second).inputs.front();
  const auto result = rewriter.node(second).outputs.front();
  if (same_shape(graph, x, result)) {
    if (!rewriter.bypass(second, x)) {
      rewriter.node(second).op = Identity{};
      rewriter.set_inputs(second, {x});
    }
  } else {
    const auto target = target_shape(*graph.tensor(x).shape, *graph.tensor(result).shape);
    const auto shape = graph.add_ints(graph.tensor(result).name + "_shape", target);
    rewriter.node(second).op = Reshape{};
    rewriter.set_inputs(second, {x, shape});
  }
  rewriter.remove_unread(between);
}

void merge_with_maker(Rewriter& rewriter, int second) {
  const auto& graph = rewriter.graph();
  const auto& node = rewriter.node(second);
  if (node.inputs.empty() || node.inputs.front() == kNoTensor) return;
  const int first = rewriter.maker(node.inputs.front());
  if (first == kNoNode || !is_pure_move(graph, node)) return;
  const auto& origin = rewriter.node(first);
  if (origin.inputs.empty() || origin.inputs.front() == kNoTensor || !is_pure_move(graph, origin))
    return;
  if (std::holds_alternative<Transpose>(node.op) && std::holds_alternative<Transpose>(origin.op)) {
    merge_transposes(rewriter, first, second);
  } else if (acts_as_reshape(graph, node) && acts_as_reshape(graph, origin)) {
    merge_reshapes(rewriter, first, second);
  }
}

}  // namespace

Result<bool> merge_moves(Graph& graph) {
  return rewrite_nodes(graph, [](Rewriter& rewriter, int n) {
    const auto& op = rewriter.node(n).op;
    if (changes_only_shape(op) || std::holds_alternative<Transpose>(op))
      merge_with_maker(rewriter, n);
  });
}

}  // namespace fleetfit::graph::rewrite
