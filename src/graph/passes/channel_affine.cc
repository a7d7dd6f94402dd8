#include "graph/passes/channel_affine.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "fleetfit/graph/shape_inference.h"
#include "graph/passes/all_passes.h"
#include "graph/passes/constants.h"

namespace fleetfit::graph::rewrite {
namespace {

bool has_input(const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoTensor;
}

bool is_float_constant(const Graph& graph, TensorId id) {
  return is_plain_float(graph, id) && graph.tensor(id).is_constant() && graph.tensor(id).shape;
}

bool has_length(const Graph& graph, TensorId id, std::int64_t count) {
  return is_float_constant(graph, id) && elements(*graph.tensor(id).shape) == count;
}

// Channels that a layer's weights make; nothing for other operators.
struct WeightChannels {
  const Shape& weights;

  std::int64_t operator()(const Conv&) const { return weights.front(); }
  std::int64_t operator()(const ConvTranspose& op) const {
    return op.layout == Layout::nhwc ? weights.front() : weights[1] * op.groups;
  }
  std::int64_t operator()(const Gemm& op) const { return weights[op.trans_b ? 0 : 1]; }
  std::int64_t operator()(const BatchNorm&) const { return weights.front(); }
  std::int64_t operator()(const auto&) const { return 0; }
};

struct ChannelAxis {
  const Shape& output;

  std::size_t operator()(const Gemm&) const { return output.size() - 1; }
  std::size_t operator()(const Conv& op) const { return channel_axis(output, op.layout); }
  std::size_t operator()(const ConvTranspose& op) const { return channel_axis(output, op.layout); }
  std::size_t operator()(const BatchNorm& op) const { return channel_axis(output, op.layout); }
  std::size_t operator()(const auto&) const { return 0; }
};

bool bias_fits(const Graph& graph, const Node& node, std::int64_t count) {
  if (std::holds_alternative<BatchNorm>(node.op)) return has_length(graph, node.inputs[2], count);
  if (!has_input(node, 2)) return true;
  // A bias of Gemm may also be one number, or a whole matrix; the last extent shows which.
  const auto bias = node.inputs[2];
  if (has_length(graph, bias, 1)) return true;
  return has_length(graph, bias, count) && graph.tensor(bias).shape->back() == count;
}

// Weights as blocks of equal length, each of which belongs to one channel.
struct WeightBlocks {
  std::size_t count = 0;
  std::size_t channels_in_row = 0;  ///< neighbouring blocks that belong to different channels
  std::size_t rows_per_group = 0;   ///< rows of blocks that belong to the same channels

  std::size_t channel(std::size_t block) const {
    return block / channels_in_row / rows_per_group * channels_in_row + block % channels_in_row;
  }
};

WeightBlocks weight_blocks(const Operator& op, const Shape& shape) {
  const auto first = static_cast<std::size_t>(shape[0]);
  const auto second = shape.size() > 1 ? static_cast<std::size_t>(shape[1]) : 1;
  const auto* transpose = std::get_if<ConvTranspose>(&op);
  if (transpose != nullptr && transpose->layout == Layout::nchw)
    return {first * second, second, first / static_cast<std::size_t>(transpose->groups)};
  const auto* gemm = std::get_if<Gemm>(&op);
  if (gemm != nullptr && !gemm->trans_b) return {first * second, second, first};
  return {first, first, 1};
}

void scale(std::span<float> weights, const WeightBlocks& blocks,
           const std::vector<double>& factors) {
  const auto length = weights.size() / blocks.count;
  for (std::size_t block = 0; block < blocks.count; ++block) {
    const double factor = factors[blocks.channel(block)];
    for (float& value : weights.subspan(block * length, length))
      value = static_cast<float>(value * factor);
  }
}

TensorId scaled_weights(Graph& graph, const Node& node, const ChannelAffine& affine) {
  const auto id = node.inputs[1];
  const bool unchanged = std::all_of(affine.scale.begin(), affine.scale.end(),
                                     [](double factor) { return factor == 1.0; });
  if (unchanged) return id;
  auto weights = graph.tensor(id);
  // Who only asks what a network costs never reads its weights.
  weights.data = TensorData::derive(
      *weights.data, [factors = affine.scale,
                      blocks = weight_blocks(node.op, *weights.shape)](std::span<std::byte> bytes) {
        scale({reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)}, blocks,
              factors);
      });
  return graph.add_tensor(std::move(weights));
}

TensorId scaled_bias(Graph& graph, const Node& node, const ChannelAffine& affine) {
  const auto count = affine.scale.size();
  std::vector<float> bias(count, 0.0F);
  auto name = graph.tensor(node.inputs[1]).name + "_bias";
  if (has_input(node, 2)) {
    bias = *float_values(graph, node.inputs[2]);
    bias.resize(count, bias.front());
    name = graph.tensor(node.inputs[2]).name;
  }
  const auto* gemm = std::get_if<Gemm>(&node.op);
  const double factor = gemm == nullptr ? 1.0 : gemm->beta;
  for (std::size_t c = 0; c < count; ++c)
    bias[c] = static_cast<float>(factor * bias[c] * affine.scale[c] + affine.shift[c]);
  return graph.add_floats(std::move(name), {static_cast<std::int64_t>(count)}, bias);
}

}  // namespace

std::optional<LayerChannels> absorbing_channels(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 2 || node.outputs.size() != 1 || node.activation ||
      touches_quantized(graph, node))
    return std::nullopt;
  const auto& output = graph.tensor(node.outputs.front()).shape;
  if (!output || output->size() < 2 || !is_float_constant(graph, node.inputs[1]))
    return std::nullopt;
  const auto& weights = *graph.tensor(node.inputs[1]).shape;
  const std::size_t least_rank = std::holds_alternative<BatchNorm>(node.op) ? 1 : 2;
  if (weights.size() < least_rank) return std::nullopt;
  const auto count = std::visit(WeightChannels{weights}, node.op);
  if (count <= 0 || !bias_fits(graph, node, count)) return std::nullopt;
  const auto axis = std::visit(ChannelAxis{*output}, node.op);
  if ((*output)[axis] != count) return std::nullopt;
  return LayerChannels{count, axis};
}

std::optional<BatchNormConstants> constants_of_batch_norm(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 5) return std::nullopt;
  const auto count =
      is_float_constant(graph, node.inputs[1]) ? elements(*graph.tensor(node.inputs[1]).shape) : 0;
  const auto fits = [&](TensorId id) { return has_length(graph, id, count); };
  if (!std::all_of(node.inputs.begin() + 1, node.inputs.begin() + 5, fits)) return std::nullopt;
  const auto data = [&](std::size_t i) { return *graph.tensor(node.inputs[i]).data; };
  return BatchNormConstants{data(1), data(2), data(3), data(4),
                            std::get<BatchNorm>(node.op).epsilon};
}

ChannelAffine BatchNormConstants::affine() const {
  const auto factors = floats_in(scale);
  const auto variances = floats_in(variance);
  const auto shifts = floats_in(shift);
  const auto means = floats_in(mean);
  ChannelAffine affine{std::vector<double>(factors.size()), std::vector<double>(factors.size())};
  for (std::size_t c = 0; c < factors.size(); ++c) {
    const double factor = factors[c] / std::sqrt(static_cast<double>(variances[c]) + epsilon);
    affine.scale[c] = factor;
    affine.shift[c] = shifts[c] - means[c] * factor;
  }
  return affine;
}

void absorb(Rewriter& rewriter, int index, const ChannelAffine& affine) {
  auto& graph = rewriter.graph();
  // The third input is the bias of all these layers; BatchNorm calls it shift.
  auto inputs = rewriter.node(index).inputs;
  inputs.resize(std::max<std::size_t>(inputs.size(), 3), kNoTensor);
  inputs[1] = scaled_weights(graph, rewriter.node(index), affine);
  inputs[2] = scaled_bias(graph, rewriter.node(index), affine);
  if (auto* gemm = std::get_if<Gemm>(&rewriter.node(index).op)) gemm->beta = 1;
  rewriter.set_inputs(index, std::move(inputs));
}

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
