#include <algorithm>
#include <utility>

#include "fleetfit/graph/quantize.h"
#include "graph/is_one_of.h"

namespace fleetfit::graph {
namespace {

constexpr ValueRange kNeverNegative = {0, 1};
constexpr ValueRange kAny = {-1, 1};

/// Whether nothing negative comes out, whatever goes in. All activations leave what is not
/// negative so.
bool removes_negatives(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::relu:
    case ActivationKind::sigmoid:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::softplus:
      return true;
    case ActivationKind::clip:
      return activation.alpha >= 0;
    default:
      return false;
  }
}

bool removes_negatives(const Node& node) {
  const auto* activate = std::get_if<Activate>(&node.op);
  return removes_negatives(node.activation) || std::holds_alternative<Softmax>(node.op) ||
         (activate != nullptr && removes_negatives(activate->function));
}

bool keeps_signs(ElementwiseKind kind) {
  return kind == ElementwiseKind::add || kind == ElementwiseKind::mul ||
         kind == ElementwiseKind::sum || kind == ElementwiseKind::mean ||
         kind == ElementwiseKind::max || kind == ElementwiseKind::min;
}

/// Whether nothing negative comes out if nothing negative goes in: means, maxima, and whatever
/// moves values.
bool keeps_signs(const Operator& op) {
  if (const auto* elementwise = std::get_if<Elementwise>(&op))
    return keeps_signs(elementwise->kind);
  return is_one_of<Activate, Pool, GlobalPool, Concat, Split, Slice, Pad, Resize, Transpose,
                   Reshape, Flatten, Squeeze, Unsqueeze, Expand, Tile, Stack, Unstack, DepthToSpace,
                   SpaceToDepth, ChannelShuffle, Identity, Dropout>(op);
}

}  // namespace

Ranges guessed_ranges(const Graph& prepared, const QuantizeOptions& options) {
  std::vector<bool> never_negative(prepared.tensors.size(), false);
  const auto is_fine = [&](TensorId id) {
    return id == kNoTensor || !is_float(prepared.tensor(id).dtype) ||
           never_negative[static_cast<std::size_t>(id)];
  };
  for (const Node& node : prepared.nodes) {
    const bool stays = keeps_signs(node.op) && std::ranges::all_of(node.inputs, is_fine);
    if (!stays && !removes_negatives(node)) continue;
    for (const TensorId id : node.outputs) never_negative[static_cast<std::size_t>(id)] = true;
  }
  Ranges ranges;
  for (const TensorId id : tensors_to_observe(prepared, options))
    ranges[id] = never_negative[static_cast<std::size_t>(id)] ? kNeverNegative : kAny;
  return ranges;
}

Result<Graph> quantized_for_costs(Graph graph) {
  if (is_quantized(graph)) return graph;
  FLEETFIT_ASSIGN(auto prepared, prepare_for_quantization(std::move(graph)));
  const auto ranges = guessed_ranges(prepared);
  // How many scales weights have changes no cost.
  return quantize(std::move(prepared), ranges, {.per_channel = false, .only_costs = true});
}

}  // namespace fleetfit::graph
