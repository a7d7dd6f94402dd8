#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::int64_t groups;
  double width;
};

constexpr Network kNetworks[] = {
    {"shufflenet_v1_g1_x1_0", 1, 1.0}, {"shufflenet_v1_g2_x1_0", 2, 1.0},
    {"shufflenet_v1_g3_x0_5", 3, 0.5}, {"shufflenet_v1_g3_x1_0", 3, 1.0},
    {"shufflenet_v1_g4_x1_0", 4, 1.0}, {"shufflenet_v1_g8_x1_0", 8, 1.0},
};

/// Channels of the first stage, chosen so that every number of groups costs about the same.
std::int64_t first_channels(std::int64_t groups) {
  switch (groups) {
    case 1:
      return 144;
    case 2:
      return 200;
    case 3:
      return 240;
    case 4:
      return 272;
    default:
      return 384;
  }
}

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
  y = net.conv_bn(y, {.out = middle, .kernel = 3, .stride = unit.down ? 2 : 1, .groups = middle});
  const std::int64_t new_channels = unit.down ? unit.out - net.channels(x) : unit.out;
  y = net.conv_bn(y, {.out = new_channels, .groups = unit.groups});
  if (unit.down) {
    y = net.concat({y, net.average_pool(x, {.kernel = 3, .stride = 2, .pad = 1})});
  } else {
    y = net.add(y, x);
  }
  return net.activate(y, kRelu);
}

TensorId shufflenet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const double width = row.width * options.width;
  const std::int64_t groups = row.groups;
  x = net.conv_bn(x, {.out = scaled_channels(24, width, groups), .kernel = 3, .stride = 2}, kRelu);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  constexpr std::array<int, 3> kUnits = {4, 8, 4};
  for (std::size_t stage = 0; stage < kUnits.size(); ++stage) {
    const std::int64_t out = scaled_channels(first_channels(groups) << stage, width, 4 * groups);
    for (int i = 0; i < kUnits[stage]; ++i) {
      const bool first = stage == 0 && i == 0;
      x = shuffle_unit(net, x, {out, groups, first ? 1 : groups, i == 0});
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_shufflenet_v1(ZooList& zoo) {
  add_rows(zoo, {.family = "shufflenet_v1"}, kNetworks, shufflenet);
}

}  // namespace fleetfit::graph
