#include "fleetfit/graph/blocks.h"

namespace fleetfit::graph {

namespace {

TensorId add_shortcut(NetBuilder& net, TensorId from, TensorId to, const InvertedResidual& block) {
  const bool fits = block.stride == 1 && net.channels(from) == block.out;
  return block.shortcut && fits ? net.add(from, to) : to;
}

}  // namespace

TensorId squeeze_excite(NetBuilder& net, TensorId x, const SqueezeExcite& se) {
  if (se.reduced == 0) return x;
  TensorId gate = net.global_average_pool(x);
  gate = net.activate(net.conv(gate, {.out = se.reduced, .bias = true}), se.inner);
  gate = net.activate(net.conv(gate, {.out = net.channels(x), .bias = true}), se.gate);
  return net.mul(x, gate);
}

TensorId inverted_residual(NetBuilder& net, TensorId x, const InvertedResidual& block) {
  const std::int64_t in = net.channels(x);
  const std::int64_t expanded = block.expanded == 0 ? in : block.expanded;
  TensorId y = x;
  if (expanded != in || block.expand_unwidened) {
    y = net.conv_bn(y, {.out = expanded, .groups = block.groups}, block.activation, block.epsilon);
  }
  if (block.groups > 1) y = net.channel_shuffle(y, block.groups);
  y = depthwise(net, y, {.kernel = block.kernel, .stride = block.stride}, block.activation,
                block.epsilon);
  y = squeeze_excite(net, y, block.se);
  y = net.conv_bn(y, {.out = block.out, .groups = block.groups}, {}, block.epsilon);
  return add_shortcut(net, x, y, block);
}

TensorId searched_stages(NetBuilder& net, TensorId x, const NetOptions& options,
                         const std::vector<SearchedStage>& stages, const InvertedResidual& common) {
  for (const SearchedStage& stage : stages) {
    std::int64_t stride = stage.stride;
    for (const SearchedLayer& layer : stage.layers) {
      InvertedResidual block = common;
      block.kernel = layer.kernel;
      block.stride = stride;
      block.expanded = layer.expansion * net.channels(x);
      block.out = options.scaled(stage.out);
      block.groups = layer.groups;
      x = inverted_residual(net, x, block);
      stride = 1;
    }
  }
  return x;
}

TensorId fused_inverted_residual(NetBuilder& net, TensorId x, const InvertedResidual& block) {
  const std::int64_t in = net.channels(x);
  const bool expands = block.expanded != 0 && block.expanded != in;
  const ConvSpec dense{
      .out = expands ? block.expanded : block.out, .kernel = block.kernel, .stride = block.stride};
  TensorId y = net.conv_bn(x, dense, block.activation, block.epsilon);
  if (expands) y = net.conv_bn(y, {.out = block.out}, {}, block.epsilon);
  return add_shortcut(net, x, y, block);
}

TensorId depthwise(NetBuilder& net, TensorId x, ConvSpec spec, const Activation& activation,
                   float epsilon) {
  spec.out = spec.groups = net.channels(x);
  return net.conv_bn(x, spec, activation, epsilon);
}

TensorId depthwise_separable(NetBuilder& net, TensorId x, const ConvSpec& spec,
                             const Activation& activation, float epsilon) {
  x = depthwise(net, x, spec, activation, epsilon);
  return net.conv_bn(x, {.out = spec.out}, activation, epsilon);
}

TensorId classify(NetBuilder& net, TensorId x, std::int64_t classes) {
  return net.linear(net.flatten(net.global_average_pool(x)), classes);
}

}  // namespace fleetfit::graph
