#include <array>

#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::array<std::int64_t, 3> channels;
  std::int64_t last;
};

constexpr Network kNetworks[] = {
    {"shufflenet_v2_x0_5", {48, 96, 192}, 1024},
    {"shufflenet_v2_x1_0", {116, 232, 464}, 1024},
    {"shufflenet_v2_x1_5", {176, 352, 704}, 1024},
    {"shufflenet_v2_x2_0", {244, 488, 976}, 2048},
};

TensorId depthwise(NetBuilder& net, TensorId x, std::int64_t stride) {
  const std::int64_t channels = net.channels(x);
  return net.conv_bn(x, {.out = channels, .kernel = 3, .stride = stride, .groups = channels});
}

TensorId main_branch(NetBuilder& net, TensorId x, std::int64_t channels, std::int64_t stride) {
  x = net.conv_bn(x, {.out = channels}, kRelu);
  return net.conv_bn(depthwise(net, x, stride), {.out = channels}, kRelu);
}

/// Half of the channels pass through unchanged.
TensorId unit(NetBuilder& net, TensorId x, std::int64_t out) {
  const std::vector<TensorId> halves = net.split(x, {out / 2, out / 2});
  const TensorId changed = main_branch(net, halves[1], out / 2, 1);
  return net.channel_shuffle(net.concat({halves[0], changed}), 2);
}

TensorId unit_down(NetBuilder& net, TensorId x, std::int64_t out) {
  const TensorId shortcut = net.conv_bn(depthwise(net, x, 2), {.out = out / 2}, kRelu);
  const TensorId changed = main_branch(net, x, out / 2, 2);
  return net.channel_shuffle(net.concat({shortcut, changed}), 2);
}

TensorId shufflenet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
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

void add_shufflenet_v2(ZooList& zoo) {
  add_rows(zoo, {.family = "shufflenet_v2"}, kNetworks, shufflenet);
}

}  // namespace fleetfit::graph
