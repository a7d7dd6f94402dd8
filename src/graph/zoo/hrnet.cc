#include <array>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  int first_depth;
  std::int64_t first_width;    ///< inside of the bottlenecks of the first stage
  int depth;                   ///< blocks of a branch in each module
  std::int64_t width;          ///< channels of the branch of highest resolution
  std::array<int, 3> modules;  ///< in the stages of two, three and four branches
};

constexpr Network kNetworks[] = {
    {"hrnet_w18_small", 1, 32, 2, 16, {1, 1, 1}},
    {"hrnet_w18_small_v2", 2, 64, 2, 18, {1, 3, 2}},
    {"hrnet_w18", 4, 64, 4, 18, {1, 4, 3}},
};

/// Branches of one network, from high to low resolution; each has half the height of the one
/// before.
using Branches = std::vector<TensorId>;

TensorId bottleneck(NetBuilder& net, TensorId x, std::int64_t middle) {
  const std::int64_t out = 4 * middle;
  TensorId y = net.conv_bn(x, {.out = middle}, kRelu);
  y = net.conv_bn(y, {.out = middle, .kernel = 3}, kRelu);
  y = net.conv_bn(y, {.out = out});
  if (net.channels(x) != out) x = net.conv_bn(x, {.out = out});
  return net.activate(net.add(y, x), kRelu);
}

TensorId basic_block(NetBuilder& net, TensorId x) {
  const ConvSpec spec{.out = net.channels(x), .kernel = 3};
  const TensorId y = net.conv_bn(net.conv_bn(x, spec, kRelu), spec);
  return net.activate(net.add(y, x), kRelu);
}

/// What branch `from` contributes to branch `to`, brought to its size.
TensorId contribution(NetBuilder& net, const Branches& branches, std::size_t from, std::size_t to) {
  TensorId x = branches[from];
  const std::int64_t out = net.channels(branches[to]);
  if (from > to) {
    x = net.conv_bn(x, {.out = out});
    return net.resize(x, static_cast<double>(1 << (from - to)), ResizeMode::nearest);
  }
  const std::int64_t in = net.channels(x);
  for (std::size_t step = from; step < to; ++step) {
    const bool last = step + 1 == to;
    x = net.conv_bn(x, {.out = last ? out : in, .kernel = 3, .stride = 2},
                    last ? Activation{} : kRelu);
  }
  return x;
}

Branches fuse(NetBuilder& net, const Branches& branches) {
  Branches fused;
  for (std::size_t to = 0; to < branches.size(); ++to) {
    TensorId sum = contribution(net, branches, 0, to);
    for (std::size_t from = 1; from < branches.size(); ++from) {
      sum = net.add(sum, contribution(net, branches, from, to));
    }
    fused.push_back(net.activate(sum, kRelu));
  }
  return fused;
}

/// Widens every branch and adds them up from high to low resolution.
TensorId classification_head(NetBuilder& net, const Branches& branches, const NetOptions& options) {
  TensorId y = bottleneck(net, branches[0], options.scaled(32));
  for (std::size_t i = 1; i < branches.size(); ++i) {
    const std::int64_t middle = options.scaled(32 << i);
    const TensorId widened = bottleneck(net, branches[i], middle);
    y = net.add(widened,
                net.conv_bn(y, {.out = 4 * middle, .kernel = 3, .stride = 2, .bias = true}, kRelu));
  }
  y = net.conv_bn(y, {.out = options.scaled(2048), .bias = true}, kRelu);
  return classify(net, y, options.classes);
}

TensorId hrnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const std::int64_t stem = options.scaled(64);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kRelu);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kRelu);
  for (int i = 0; i < row.first_depth; ++i) {
    x = bottleneck(net, x, options.scaled(row.first_width));
  }
  const auto width = [&](std::size_t branch) { return options.scaled(row.width << branch); };
  Branches branches = {net.conv_bn(x, {.out = width(0), .kernel = 3}, kRelu)};
  for (std::size_t stage = 0; stage < row.modules.size(); ++stage) {
    const TensorId lowest = stage == 0 ? x : branches.back();
    branches.push_back(
        net.conv_bn(lowest, {.out = width(stage + 1), .kernel = 3, .stride = 2}, kRelu));
    for (int module = 0; module < row.modules[stage]; ++module) {
      for (TensorId& branch : branches) {
        for (int i = 0; i < row.depth; ++i) branch = basic_block(net, branch);
      }
      branches = fuse(net, branches);
    }
  }
  return classification_head(net, branches, options);
}

}  // namespace

void add_hrnet(ZooList& zoo) { add_rows(zoo, {.family = "hrnet"}, kNetworks, hrnet); }

}  // namespace fleetfit::graph
