#include <span>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

constexpr Activation kLeaky{ActivationKind::leaky_relu, 0.01F};

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

struct Network {
  const char* name;
  std::span<const Stage> stages;
  std::int64_t groups;
  bool dark;  ///< Darknet's stem and blocks, else ResNet's
};

constexpr Network kNetworks[] = {
    {"cspresnet50", kResNet, 1, false},
    {"cspresnext50", kResNext, 32, false},
    {"cspdarknet53", kDarknet, 1, true},
};

TensorId resnet_block(NetBuilder& net, TensorId x, std::int64_t middle, std::int64_t groups) {
  TensorId y = net.conv_bn(x, {.out = middle}, kLeaky);
  y = net.conv_bn(y, {.out = middle, .kernel = 3, .groups = groups}, kLeaky);
  y = net.conv_bn(y, {.out = net.channels(x)});
  return net.activate(net.add(y, x), kLeaky);
}

TensorId dark_block(NetBuilder& net, TensorId x, std::int64_t middle) {
  const TensorId y = net.conv_bn(x, {.out = middle}, kLeaky);
  return net.add(net.conv_bn(y, {.out = net.channels(x), .kernel = 3}, kLeaky), x);
}

/// Only half of the channels go through the blocks.
TensorId cross_stage(NetBuilder& net, TensorId x, const Stage& stage, const Network& row) {
  if (stage.stride > 1) {
    x = net.conv_bn(
        x, {.out = stage.down, .kernel = 3, .stride = stage.stride, .groups = row.groups}, kLeaky);
  }
  x = net.conv_bn(x, {.out = stage.expanded}, row.dark ? kLeaky : Activation{});
  const std::int64_t half = stage.expanded / 2;
  const std::vector<TensorId> halves = net.split(x, {half, half});
  TensorId y = halves[1];
  for (int i = 0; i < stage.depth; ++i) {
    y = row.dark ? dark_block(net, y, stage.middle)
                 : resnet_block(net, y, stage.middle, row.groups);
  }
  y = net.conv_bn(y, {.out = half}, kLeaky);
  return net.conv_bn(net.concat({halves[0], y}), {.out = stage.out}, kLeaky);
}

TensorId cspnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  if (row.dark) {
    x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3}, kLeaky);
  } else {
    x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 7, .stride = 2}, kLeaky);
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

void add_cspnet(ZooList& zoo) {
  add_rows(zoo, {.family = "cspnet", .image = 256}, kNetworks, cspnet);
}

}  // namespace fleetfit::graph
