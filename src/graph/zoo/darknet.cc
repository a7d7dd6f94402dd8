#include <array>
#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

constexpr Activation kDarknetLeaky{ActivationKind::leaky_relu, 0.1F};

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
          kDarknetLeaky);
    }
  }
  x = net.conv(x, {.out = options.classes, .bias = true});
  return net.flatten(net.global_average_pool(x));
}

TensorId darknet53(NetBuilder& net, TensorId x, const NetOptions& options) {
  constexpr std::array<int, 5> kDepth = {1, 2, 8, 8, 4};
  x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3}, kDarknetLeaky);
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    const std::int64_t channels = options.scaled(64 << stage);
    x = net.conv_bn(x, {.out = channels, .kernel = 3, .stride = 2}, kDarknetLeaky);
    for (int i = 0; i < kDepth[stage]; ++i) {
      TensorId y = net.conv_bn(x, {.out = channels / 2}, kDarknetLeaky);
      y = net.conv_bn(y, {.out = channels, .kernel = 3}, kDarknetLeaky);
      x = net.add(y, x);
    }
  }
  return classify(net, x, options.classes);
}

// --- The same, and ResNet, with half of the channels around each stage ---

constexpr Activation kCspLeaky{ActivationKind::leaky_relu, 0.01F};

struct Stage {
  int depth;
  std::int64_t stride;
  std::int64_t out;
  std::int64_t down;      ///< channels behind the strided convolution
  std::int64_t expanded;  ///< channels that are split between the blocks and the way around them
  std::int64_t middle;    ///< inside of the blocks
};

constexpr Stage kResNet[] = {{3, 1, 128, 64, 256, 64},
                             {3, 2, 256, 128, 512, 128},
                             {5, 2, 512, 256, 1024, 256},
                             {2, 2, 1024, 512, 2048, 512}};
constexpr Stage kResNext[] = {{3, 1, 256, 64, 256, 128},
                              {3, 2, 512, 256, 512, 256},
                              {5, 2, 1024, 512, 1024, 512},
                              {2, 2, 2048, 1024, 2048, 1024}};
constexpr Stage kDarknet[] = {{1, 2, 64, 64, 128, 32},
                              {2, 2, 128, 128, 128, 64},
                              {8, 2, 256, 256, 256, 128},
                              {8, 2, 512, 512, 512, 256},
                              {4, 2, 1024, 1024, 1024, 512}};

struct CspNet {
  const char* name;
  std::span<const Stage> stages;
  std::int64_t groups;
  bool dark;  ///< Darknet's stem and blocks, else ResNet's
};

constexpr CspNet kCspNets[] = {
    {"cspresnet50", kResNet, 1, false},
    {"cspresnext50", kResNext, 32, false},
    {"cspdarknet53", kDarknet, 1, true},
};

TensorId resnet_block(NetBuilder& net, TensorId x, std::int64_t middle, std::int64_t groups) {
  TensorId y = net.conv_bn(x, {.out = middle}, kCspLeaky);
  y = net.conv_bn(y, {.out = middle, .kernel = 3, .groups = groups}, kCspLeaky);
  y = net.conv_bn(y, {.out = net.channels(x)});
  return net.activate(net.add(y, x), kCspLeaky);
}

TensorId dark_block(NetBuilder& net, TensorId x, std::int64_t middle) {
  const TensorId y = net.conv_bn(x, {.out = middle}, kCspLeaky);
  return net.add(net.conv_bn(y, {.out = net.channels(x), .kernel = 3}, kCspLeaky), x);
}

/// Only half of the channels go through the blocks.
TensorId cross_stage(NetBuilder& net, TensorId x, const Stage& stage, const CspNet& row) {
  if (stage.stride > 1) {
    x = net.conv_bn(x,
                    {.out = stage.down, .kernel = 3, .stride = stage.stride, .groups = row.groups},
                    kCspLeaky);
  }
  x = net.conv_bn(x, {.out = stage.expanded}, row.dark ? kCspLeaky : Activation{});
  const std::int64_t half = stage.expanded / 2;
  const std::vector<TensorId> halves = net.split(x, {half, half});
  TensorId y = halves[1];
  for (int i = 0; i < stage.depth; ++i) {
    y = row.dark ? dark_block(net, y, stage.middle)
                 : resnet_block(net, y, stage.middle, row.groups);
  }
  y = net.conv_bn(y, {.out = half}, kCspLeaky);
  return net.conv_bn(net.concat({halves[0], y}), {.out = stage.out}, kCspLeaky);
}

TensorId cspnet(NetBuilder& net, TensorId x, const NetOptions& options, const CspNet& row) {
  if (row.dark) {
    x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3}, kCspLeaky);
  } else {
    x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 7, .stride = 2}, kCspLeaky);
    x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  }
  for (Stage stage : row.stages) {
    for (std::int64_t Stage::* channels :
         {&Stage::out, &Stage::down, &Stage::expanded, &Stage::middle}) {
      const std::int64_t divisor = row.groups == 1 ? 8 : row.groups;
      stage.*channels = scaled_channels(stage.*channels, options.width, divisor);
    }
    x = cross_stage(net, x, stage, row);
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_darknet(ZooList& zoo) {
  zoo.push_back({.name = "darknet19", .family = "darknet", .build = darknet19});
  zoo.push_back({.name = "darknet53", .family = "darknet", .build = darknet53});
  add_rows(zoo, {.family = "cspnet", .image = 256}, kCspNets, cspnet);
}

}  // namespace fleetfit::graph
