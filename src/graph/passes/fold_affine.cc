#include "fleetfit/graph/shape_inference.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/channel_affine.h"
#include "graph/passes/constants.h"

namespace fleetfit::graph::rewrite {
namespace {

// One value for each channel from a constant that is broadcast against the layer's output; nothing
// if it varies along another dimension or makes the output larger.
std::optional<std::vector<double>> per_channel(const Graph& graph, TensorId id, const Shape& output,
                                               const LayerChannels& channels) {
  if (!is_plain_float(graph, id) || !graph.tensor(id).is_constant() || !graph.tensor(id).shape)
    return std::nullopt;
  const auto& shape = *graph.tensor(id).shape;
  if (shape.size() > output.size()) return std::nullopt;
  const auto skipped = output.size() - shape.size();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && (d + skipped != channels.axis || shape[d] != channels.count))
      return std::nullopt;
  }
  const auto values = *float_values(graph, id);
  std::vector<double> result(values.begin(), values.end());
  result.resize(static_cast<std::size_t>(channels.count), result.front());
  return result;
}

// c1 * x + c0 for `x op c`, or for `c op x` with `constant_first`; nothing if that is not its form.
std::optional<ChannelAffine> affine_of(ElementwiseKind kind, const std::vector<double>& constant,
                                       bool constant_first) {
  ChannelAffine affine{std::vector<double>(constant.size(), 1.0),
                       std::vector<double>(constant.size(), 0.0)};
  for (std::size_t c = 0; c < constant.size(); ++c) {
    switch (kind) {
      case ElementwiseKind::add:
        affine.shift[c] = constant[c];
        break;
      case ElementwiseKind::sub:
        affine.scale[c] = constant_first ? -1.0 : 1.0;
        affine.shift[c] = constant_first ? constant[c] : -constant[c];
        break;
      case ElementwiseKind::mul:
        affine.scale[c] = constant[c];
        break;
      case ElementwiseKind::div:
        if (constant_first || constant[c] == 0) return std::nullopt;
        affine.scale[c] = 1.0 / constant[c];
        break;
      default:
        return std::nullopt;
    }
  }
  return affine;
}

void fold_arithmetic(Rewriter& rewriter, int index) {
  const auto& graph = rewriter.graph();
  const auto& node = rewriter.node(index);
  const auto* op = std::get_if<Elementwise>(&node.op);
  if (op == nullptr || node.inputs.size() != 2 || touches_quantized(graph, node)) return;
  const bool constant_first = graph.tensor(node.inputs[0]).is_constant();
  const auto x = node.inputs[constant_first ? 1 : 0];
  const int layer = rewriter.maker(x);
  if (layer == kNoNode || !rewriter.read_once(x)) return;
  const auto channels = absorbing_channels(graph, rewriter.node(layer));
  if (!channels) return;
  const auto constant =
      per_channel(graph, node.inputs[constant_first ? 0 : 1], *graph.tensor(x).shape, *channels);
  if (!constant) return;
  const auto affine = affine_of(op->kind, *constant, constant_first);
  if (!affine) return;
  absorb(rewriter, layer, *affine);
  rewriter.take_over(layer, index);
}

void fold_norm(Rewriter& rewriter, int index) {
  const auto& graph = rewriter.graph();
  const auto& node = rewriter.node(index);
  const auto* op = std::get_if<BatchNorm>(&node.op);
  if (op == nullptr || node.inputs.size() < 5 || touches_quantized(graph, node)) return;
  const auto x = node.inputs.front();
  const int layer = rewriter.maker(x);
  if (layer == kNoNode || !rewriter.read_once(x) || !rewriter.only_first_output_needed(index))
    return;
  if (std::holds_alternative<BatchNorm>(rewriter.node(layer).op)) return;
  const auto channels = absorbing_channels(graph, rewriter.node(layer));
  if (!channels || channels->axis != channel_axis(*graph.tensor(x).shape, op->layout)) return;
  const auto constants = constants_of_batch_norm(graph, node);
  if (!constants) return;
  const auto affine = constants->affine();
  if (static_cast<std::int64_t>(affine.scale.size()) != channels->count) return;
  absorb(rewriter, layer, affine);
  rewriter.take_over(layer, index);
}

}  // namespace

Result<bool> fold_affine(Graph& graph) { return rewrite_nodes(graph, fold_arithmetic); }

Result<bool> fold_batch_norm(Graph& graph) { return rewrite_nodes(graph, fold_norm); }

}  // namespace fleetfit::graph::rewrite
