#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

constexpr Activation kLeaky{ActivationKind::leaky_relu, 0.1F};

/// 3x3 convolutions with 1x1 ones of half the channels in between.
TensorId darknet19(NetBuilder& net, TensorId x, const NetOptions& options) {
  constexpr std::array<int, 6> kDepth = {1, 1, 3, 3, 5, 5};
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    if (stage > 0) x = net.max_pool(x, {.kernel = 2, .stride = 2});
    const std::int64_t channels = 32 << stage;
    for (int i = 0; i < kDepth[stage]; ++i) {
      const bool wide = i % 2 == 0;
      x = net.conv_bn(
          x, {.out = options.scaled(wide ? channels : channels / 2), .kernel = wide ? 3 : 1},
          kLeaky);
    }
  }
  x = net.conv(x, {.out = options.classes, .bias = true});
  return net.flatten(net.global_average_pool(x));
}

TensorId darknet53(NetBuilder& net, TensorId x, const NetOptions& options) {
  constexpr std::array<int, 5> kDepth = {1, 2, 8, 8, 4};
  x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3}, kLeaky);
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    const std::int64_t channels = options.scaled(64 << stage);
    x = net.conv_bn(x, {.out = channels, .kernel = 3, .stride = 2}, kLeaky);
    for (int i = 0; i < kDepth[stage]; ++i) {
      TensorId y = net.conv_bn(x, {.out = channels / 2}, kLeaky);
      y = net.conv_bn(y, {.out = channels, .kernel = 3}, kLeaky);
      x = net.add(y, x);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_darknet(ZooList& zoo) {
  zoo.push_back({.name = "darknet19", .family = "darknet", .build = darknet19});
  zoo.push_back({.name = "darknet53", .family = "darknet", .build = darknet53});
}

}  // namespace fleetfit::graph
