#include "fleetfit/graph/shape_inference.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/channel_affine.h"
#include "graph/passes/constants.h"

namespace fleetfit::graph::rewrite {
namespace {

bool fold_into_layer(Rewriter& rewriter, int index) {
  const auto& graph = rewriter.graph();
  const auto& node = rewriter.node(index);
  const auto* op = std::get_if<BatchNorm>(&node.op);
  if (op == nullptr || node.inputs.size() < 5 || touches_quantized(graph, node)) return false;
  const auto x = node.inputs.front();
  const int layer = rewriter.maker(x);
  if (layer == kNoNode || !rewriter.read_once(x) || !rewriter.only_first_output_needed(index))
    return false;
  if (std::holds_alternative<BatchNorm>(rewriter.node(layer).op)) return false;
  const auto channels = absorbing_channels(graph, rewriter.node(layer));
  if (!channels || channels->axis != channel_axis(*graph.tensor(x).shape, op->layout)) return false;
  const auto constants = constants_of_batch_norm(graph, node);
  if (!constants) return false;
  const auto affine = constants->affine();
  if (static_cast<std::int64_t>(affine.scale.size()) != channels->count) return false;
  absorb(rewriter, layer, affine);
  rewriter.take_over(layer, index);
  return true;
}

}  // namespace

Result<bool> fold_batch_norm(Graph& graph) {
  Rewriter rewriter(graph);
  for (int n = 0; n < rewriter.node_count(); ++n) fold_into_layer(rewriter, n);
  return rewriter.finish();
}

}  // namespace fleetfit::graph::rewrite
