#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;                           ///< with the pixels that one feature sees
  std::array<std::int64_t, 4> first_kernels;  ///< of the first block of each stage
};

constexpr Network kNetworks[] = {
    {"bagnet9", {3, 3, 1, 1}}, {"bagnet17", {3, 3, 3, 1}}, {"bagnet33", {3, 3, 3, 3}}};

struct Block {
  std::int64_t middle;
  std::int64_t kernel;
  std::int64_t stride;
};

/// ResNet's bottleneck without padding: the shortcut is cut at the lower right edge to fit.
TensorId block(NetBuilder& net, TensorId x, const Block& spec) {
  const std::int64_t out = 4 * spec.middle;
  TensorId shortcut = x;
  if (spec.stride != 1 || net.channels(x) != out) {
    shortcut = net.conv_bn(x, {.out = out, .stride = spec.stride});
  }
  TensorId y = net.conv_bn(x, {.out = spec.middle}, kRelu);
  y = net.conv_bn(y, {.out = spec.middle, .kernel = spec.kernel, .stride = spec.stride, .pad = 0},
                  kRelu);
  y = net.conv_bn(y, {.out = out});
  if (net.height(shortcut) != net.height(y)) {
    shortcut = net.slice(net.slice(shortcut, 2, 0, net.height(y)), 3, 0, net.width(y));
  }
  return net.activate(net.add(y, shortcut), kRelu);
}

TensorId bagnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const std::int64_t first = options.scaled(64);
  x = net.conv(x, {.out = first});
  x = net.conv_bn(x, {.out = first, .kernel = 3, .pad = 0}, kRelu);
  constexpr std::array<int, 4> kDepth = {3, 4, 6, 3};
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    for (int i = 0; i < kDepth[stage]; ++i) {
      x = block(net, x,
                {.middle = options.scaled(64 << stage),
                 .kernel = i == 0 ? row.first_kernels[stage] : 1,
                 .stride = i == 0 && stage < 3 ? 2 : 1});
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_bagnet(ZooList& zoo) { add_rows(zoo, {.family = "bagnet"}, kNetworks, bagnet); }

}  // namespace fleetfit::graph
