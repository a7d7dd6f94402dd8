#include "graph/quantize/merge_activations.h"

#include <algorithm>
#include <cmath>

#include "fleetfit/graph/operator_facts.h"
#include "graph/passes/rewriter.h"

namespace fleetfit::graph::quantization {
namespace {

using rewrite::kNoNode;
using rewrite::Rewriter;

/// The layer without an activation that makes a quantized tensor; kNoNode if there is none.
int plain_layer(Rewriter& rewriter, TensorId x) {
  const int layer = rewriter.maker(x);
  if (layer == kNoNode || rewriter.is_output(x) || !rewriter.graph().tensor(x).quantization)
    return kNoNode;
  const auto& node = rewriter.node(layer);
  return is_layer(node.op) && !node.activation ? layer : kNoNode;
}

bool same_type(Rewriter& rewriter, TensorId x, const Node& last) {
  const auto& y = rewriter.graph().tensor(last.outputs.front());
  return y.quantization && y.dtype == rewriter.graph().tensor(x).dtype;
}

/// Whether a table of 256 entries is quicker than computing the function.
bool is_costly(const Activation& function) {
  using Kind = ActivationKind;
  switch (function.kind) {
    case Kind::none:
    case Kind::relu:
    case Kind::clip:
    case Kind::leaky_relu:
    case Kind::hard_sigmoid:
    case Kind::hard_swish:
      return false;
    default:
      return true;
  }
}

void merge(Rewriter& rewriter, int layer, int last, const Activation& function) {
  rewriter.take_over(layer, last);
  rewriter.node(layer).activation = function;
}

/// x times a function of x that is a known activation.
Activation gated(const Activation& gate) {
  if (gate.kind == ActivationKind::sigmoid) return kSilu;
  constexpr float kClose = 1e-6F;
  const bool is_sixth = gate.kind == ActivationKind::hard_sigmoid &&
                        std::abs(gate.alpha - kHardSigmoid.alpha) < kClose &&
                        std::abs(gate.beta - kHardSigmoid.beta) < kClose;
  return is_sixth ? kHardSwish : Activation{};
}

void merge_single(Rewriter& rewriter, int index) {
  const auto& node = rewriter.node(index);
  const auto x = node.inputs.front();
  const int layer = plain_layer(rewriter, x);
  if (layer == kNoNode || !rewriter.read_once(x) || !same_type(rewriter, x, node) ||
      is_costly(std::get<Activate>(node.op).function))
    return;
  merge(rewriter, layer, index, Activation{std::get<Activate>(node.op).function});
}

bool merge_gated(Rewriter& rewriter, int index, std::size_t side) {
  const auto& node = rewriter.node(index);
  const auto x = node.inputs[side];
  const auto gate = node.inputs[1 - side];
  const int opener = rewriter.maker_of<Activate>(gate);
  if (opener == kNoNode || !rewriter.read_once(gate) || rewriter.node(opener).activation ||
      rewriter.node(opener).inputs.front() != x)
    return false;
  const auto function = gated(std::get<Activate>(rewriter.node(opener).op).function);
  const int layer = plain_layer(rewriter, x);
  if (!function || rewriter.readers(x).size() != 2 || !same_type(rewriter, x, node)) return false;
  if (is_costly(function)) {
    rewriter.remove(opener);
    rewriter.set_inputs(index, {x});
    rewriter.node(index).op = Activate{function};
    return true;
  }
  if (layer == kNoNode) return false;
  rewriter.remove(opener);
  merge(rewriter, layer, index, function);
  return true;
}

bool is_product(const Operator& op) {
  const auto* elementwise = std::get_if<Elementwise>(&op);
  return elementwise != nullptr && elementwise->kind == ElementwiseKind::mul;
}

}  // namespace

Result<bool> merge_activations(Graph& graph) {
  Rewriter rewriter(graph);
  for (int n = 0; n < rewriter.node_count(); ++n) {
    if (rewriter.removed(n) || rewriter.node(n).activation) continue;
    if (std::holds_alternative<Activate>(rewriter.node(n).op)) {
      merge_single(rewriter, n);
    } else if (is_product(rewriter.node(n).op) && !merge_gated(rewriter, n, 0)) {
      merge_gated(rewriter, n, 1);
    }
  }
  return rewriter.finish();
}

}  // namespace fleetfit::graph::quantization
