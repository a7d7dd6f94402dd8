#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

// --- Version 1: 1x1 convolutions in groups ---

struct ShuffleNetV1 {
  const char* name;
  std::int64_t groups;
  double width;
  std::int64_t first;  ///< channels of the first stage: every number of groups costs about the same
};

constexpr ShuffleNetV1 kShuffleNetsV1[] = {
    {"shufflenet_v1_g1_x1_0", 1, 1.0, 144}, {"shufflenet_v1_g2_x1_0", 2, 1.0, 200},
    {"shufflenet_v1_g3_x0_5", 3, 0.5, 240}, {"shufflenet_v1_g3_x1_0", 3, 1.0, 240},
    {"shufflenet_v1_g4_x1_0", 4, 1.0, 272}, {"shufflenet_v1_g8_x1_0", 8, 1.0, 384},
};

struct Unit {
  std::int64_t out;
  std::int64_t groups;
  std::int64_t first_groups;  ///< of the convolution that reads the input
  bool down;                  ///< halves height and width, and joins the pooled input by concat
};

TensorId shuffle_unit(NetBuilder& net, TensorId x, const Unit& unit) {
  const std::int64_t middle = unit.out / 4;
  TensorId y = net.conv_bn(x, {.out = middle, .groups = unit.first_groups}, kRelu);
  if (unit.groups > 1) y = net.channel_shuffle(y, unit.groups);
  y = depthwise(net, y, {.kernel = 3, .stride = unit.down ? 2 : 1});
  const std::int64_t new_channels = unit.down ? unit.out - net.channels(x) : unit.out;
  y = net.conv_bn(y, {.out = new_channels, .groups = unit.groups});
  if (unit.down) {
    y = net.concat({y, net.average_pool(x, {.kernel = 3, .stride = 2, .pad = 1})});
  } else {
    y = net.add(y, x);
  }
  return net.activate(y, kRelu);
}

TensorId shufflenet_v1(NetBuilder& net, TensorId x, const NetOptions& options,
                       const ShuffleNetV1& row) {
  const double width = row.width * options.width;
  const std::int64_t groups = row.groups;
  x = net.conv_bn(x, {.out = scaled_channels(24, width, groups), .kernel = 3, .stride = 2}, kRelu);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  constexpr std::array<int, 3> kUnits = {4, 8, 4};
  for (std::size_t stage = 0; stage < kUnits.size(); ++stage) {
    const std::int64_t out = scaled_channels(row.first << stage, width, 4 * groups);
    for (int i = 0; i < kUnits[stage]; ++i) {
      const bool first = stage == 0 && i == 0;
      x = shuffle_unit(net, x, {out, groups, first ? 1 : groups, i == 0});
    }
  }
  return classify(net, x, options.classes);
}

// --- Version 2: half of the channels pass through ---

struct ShuffleNetV2 {
  const char* name;
  std::array<std::int64_t, 3> channels;
  std::int64_t last;
};

constexpr ShuffleNetV2 kShuffleNetsV2[] = {
    {"shufflenet_v2_x0_5", {48, 96, 192}, 1024},
    {"shufflenet_v2_x1_0", {116, 232, 464}, 1024},
    {"shufflenet_v2_x1_5", {176, 352, 704}, 1024},
    {"shufflenet_v2_x2_0", {244, 488, 976}, 2048},
};

TensorId main_branch(NetBuilder& net, TensorId x, std::int64_t channels, std::int64_t stride) {
  x = net.conv_bn(x, {.out = channels}, kRelu);
  return net.conv_bn(depthwise(net, x, {.kernel = 3, .stride = stride}), {.out = channels}, kRelu);
}

/// Half of the channels pass through unchanged.
TensorId unit(NetBuilder& net, TensorId x, std::int64_t out) {
  const std::vector<TensorId> halves = net.split(x, {out / 2, out / 2});
  const TensorId changed = main_branch(net, halves[1], out / 2, 1);
  return net.channel_shuffle(net.concat({halves[0], changed}), 2);
}

TensorId unit_down(NetBuilder& net, TensorId x, std::int64_t out) {
  const TensorId shortcut =
      net.conv_bn(depthwise(net, x, {.kernel = 3, .stride = 2}), {.out = out / 2}, kRelu);
  const TensorId changed = main_branch(net, x, out / 2, 2);
  return net.channel_shuffle(net.concat({shortcut, changed}), 2);
}

TensorId shufflenet_v2(NetBuilder& net, TensorId x, const NetOptions& options,
                       const ShuffleNetV2& row) {
  x = net.conv_bn(x, {.out = options.scaled(24), .kernel = 3, .stride = 2}, kRelu);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  constexpr std::array<int, 3> kUnits = {4, 8, 4};
  for (std::size_t stage = 0; stage < kUnits.size(); ++stage) {
    const std::int64_t out = options.scaled(row.channels[stage]);
    x = unit_down(net, x, out);
    for (int i = 1; i < kUnits[stage]; ++i) x = unit(net, x, out);
  }
  x = net.conv_bn(x, {.out = options.scaled(row.last)}, kRelu);
  return net.linear(net.mean(x, {2, 3}), options.classes);
}

}  // namespace

void add_shufflenet(ZooList& zoo) {
  add_rows(zoo, {.family = "shufflenet_v1"}, kShuffleNetsV1, shufflenet_v1);
  add_rows(zoo, {.family = "shufflenet_v2"}, kShuffleNetsV2, shufflenet_v2);
}

}  // namespace fleetfit::graph
