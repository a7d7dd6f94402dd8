#include <algorithm>
#include <utility>

#include "fleetfit/graph/operator_facts.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/layout_forms.h"

namespace fleetfit::graph::rewrite {
namespace {

bool in_other_layout(const Operator& op, Layout wanted) {
  return layout_of(op).value_or(wanted) != wanted;
}

Result<bool> convert(Graph& graph, Layout wanted) {
  const bool needed = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return in_other_layout(node.op, wanted);
  });
  if (!needed) return false;
  const auto nodes = std::exchange(graph.nodes, {});
  LayoutForms forms(graph, wanted);
  bool changed = false;
  for (const auto& node : nodes) {
    if (move_image_operator(forms, node) || move_batch_operator(forms, node)) {
      changed = true;
    } else if (!move_transpose(forms, node) && !move_follower(forms, node)) {
      forms.emit_plain(node);
    }
  }
  forms.finish();
  // What the forms leave: transposes that only move single elements before a reshape, constants
  // that are used in their moved form alone.
  for (const auto clean : {merge_moves, remove_identities, remove_dead_nodes}) {
    if (auto result = clean(graph); !result) return result;
  }
  return changed;
}

}  // namespace

Result<bool> layout_nchw(Graph& graph) { return convert(graph, Layout::nchw); }
Result<bool> layout_nhwc(Graph& graph) { return convert(graph, Layout::nhwc); }

}  // namespace fleetfit::graph::rewrite
