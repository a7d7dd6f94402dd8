#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

TensorId stem(NetBuilder& net, TensorId x, std::int64_t channels) {
  x = net.conv_bn(x, {.out = channels, .kernel = 3, .stride = 2}, kRelu);
  TensorId narrow = net.conv_bn(x, {.out = channels / 2}, kRelu);
  narrow = net.conv_bn(narrow, {.out = channels, .kernel = 3, .stride = 2}, kRelu);
  const TensorId pooled = net.max_pool(x, {.kernel = 2, .stride = 2});
  return net.conv_bn(net.concat({narrow, pooled}), {.out = channels}, kRelu);
}

/// Two branches of new channels, one of which sees twice as far.
TensorId dense_layer(NetBuilder& net, TensorId x, std::int64_t growth, std::int64_t bottleneck) {
  const ConvSpec squeeze{.out = bottleneck * growth / 2};
  const ConvSpec conv3x3{.out = growth / 2, .kernel = 3};
  const TensorId near = net.conv_bn(net.conv_bn(x, squeeze, kRelu), conv3x3, kRelu);
  TensorId far = net.conv_bn(net.conv_bn(x, squeeze, kRelu), conv3x3, kRelu);
  far = net.conv_bn(far, conv3x3, kRelu);
  return net.concat({x, near, far});
}

TensorId peleenet(NetBuilder& net, TensorId x, const NetOptions& options) {
  constexpr std::array<int, 4> kDepth = {3, 4, 8, 6};
  constexpr std::array<std::int64_t, 4> kBottleneck = {1, 2, 4, 4};
  const std::int64_t growth = options.scaled(32);
  x = stem(net, x, growth);
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    for (int i = 0; i < kDepth[stage]; ++i) x = dense_layer(net, x, growth, kBottleneck[stage]);
    x = net.conv_bn(x, {.out = net.channels(x)}, kRelu);
    if (stage + 1 < kDepth.size()) x = net.average_pool(x, {.kernel = 2, .stride = 2});
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_peleenet(ZooList& zoo) {
  zoo.push_back({.name = "peleenet", .family = "peleenet", .build = peleenet});
}

}  // namespace fleetfit::graph
