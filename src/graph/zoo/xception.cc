#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {

namespace {

/// A depthwise and a 1x1 convolution with nothing in between.
TensorId separable(NetBuilder& net, TensorId x, std::int64_t out) {
  const std::int64_t in = net.channels(x);
  x = net.conv(x, {.out = in, .kernel = 3, .groups = in});
  return net.batch_norm(net.conv(x, {.out = out}));
}

/// Separable convolutions, each behind a ReLU, and max pooling if the block halves the image.
struct XceptionBlock {
  std::vector<std::int64_t> outs;
  std::int64_t stride = 1;
  bool relu_first = true;
};

TensorId xception_block(NetBuilder& net, TensorId x, const XceptionBlock& block,
                        const NetOptions& options) {
  TensorId y = x;
  for (std::size_t i = 0; i < block.outs.size(); ++i) {
    if (i > 0 || block.relu_first) y = net.activate(y, kRelu);
    y = separable(net, y, options.scaled(block.outs[i]));
  }
  if (block.stride == 1) return net.add(y, x);
  y = net.max_pool(y, {.kernel = 3, .stride = block.stride, .pad = 1});
  return net.add(y, net.conv_bn(x, {.out = net.channels(y), .stride = block.stride}));
}

TensorId xception(NetBuilder& net, TensorId x, const NetOptions& options) {
  x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3, .stride = 2, .pad = 0}, kRelu);
  x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 3, .pad = 0}, kRelu);
  x = xception_block(net, x, {.outs = {128, 128}, .stride = 2, .relu_first = false}, options);
  x = xception_block(net, x, {.outs = {256, 256}, .stride = 2}, options);
  x = xception_block(net, x, {.outs = {728, 728}, .stride = 2}, options);
  for (int i = 0; i < 8; ++i) x = xception_block(net, x, {.outs = {728, 728, 728}}, options);
  x = xception_block(net, x, {.outs = {728, 1024}, .stride = 2}, options);
  for (const std::int64_t out : {1536, 2048}) {
    x = net.activate(separable(net, x, options.scaled(out)), kRelu);
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_xception(ZooList& zoo) {
  zoo.push_back({.name = "xception", .family = "xception", .image = 299, .build = xception});
}

}  // namespace fleetfit::graph
