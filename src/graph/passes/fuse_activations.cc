#include "fleetfit/graph/operator_facts.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {
namespace {

bool computes_numbers(ElementwiseKind kind) {
  switch (kind) {
    case ElementwiseKind::add:
    case ElementwiseKind::sub:
    case ElementwiseKind::mul:
    case ElementwiseKind::div:
    case ElementwiseKind::pow:
    case ElementwiseKind::min:
    case ElementwiseKind::max:
    case ElementwiseKind::sum:
    case ElementwiseKind::mean:
    case ElementwiseKind::squared_difference:
      return true;
    default:
      return false;
  }
}

bool can_apply(const Operator& op) {
  if (const auto* elementwise = std::get_if<Elementwise>(&op))
    return computes_numbers(elementwise->kind);
  return is_layer(op) || std::holds_alternative<BatchNorm>(op) || std::holds_alternative<Pool>(op);
}

// On a quantized tensor the activation works on rounded values. Bounds commute with rounding to one
// grid; curved functions do not.
bool keeps_rounding(const Graph& graph, TensorId before, TensorId after, ActivationKind kind) {
  const auto& a = graph.tensor(before);
  const auto& b = graph.tensor(after);
  if (a.dtype != b.dtype || a.quantization != b.quantization) return false;
  return !a.quantization || kind == ActivationKind::relu || kind == ActivationKind::clip;
}

}  // namespace

Result<bool> fuse_activations(Graph& graph) {
  return rewrite_nodes(graph, [&](Rewriter& rewriter, int n) {
    const auto& node = rewriter.node(n);
    const auto* activate = std::get_if<Activate>(&node.op);
    if (activate == nullptr || node.activation) return;
    const auto x = node.inputs.front();
    const int origin = rewriter.maker(x);
    if (origin == kNoNode || !rewriter.read_once(x) || rewriter.node(origin).activation) return;
    if (!can_apply(rewriter.node(origin).op) || rewriter.node(origin).outputs.front() != x) return;
    if (!keeps_rounding(graph, x, node.outputs.front(), activate->function.kind)) return;
    const auto function = activate->function;
    rewriter.take_over(origin, n);
    rewriter.node(origin).activation = function;
  });
}

}  // namespace fleetfit::graph::rewrite
