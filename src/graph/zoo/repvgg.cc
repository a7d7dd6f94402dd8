#include <algorithm>
#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::array<int, 4> depth;
  std::array<double, 4> width;  ///< multiplies 64, 128, 256, 512
};

constexpr Network kNetworks[] = {
    {"repvgg_a0", {2, 4, 14, 1}, {0.75, 0.75, 0.75, 2.5}},
    {"repvgg_a1", {2, 4, 14, 1}, {1, 1, 1, 2.5}},
    {"repvgg_a2", {2, 4, 14, 1}, {1.5, 1.5, 1.5, 2.75}},
    {"repvgg_b0", {4, 6, 16, 1}, {1, 1, 1, 2.5}},
    {"repvgg_b1", {4, 6, 16, 1}, {2, 2, 2, 4}},
};

/// As deployed: the branches of training are merged into one convolution.
TensorId repvgg(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const auto layer = [&](std::int64_t out, std::int64_t stride) {
    x = net.activate(net.conv(x, {.out = out, .kernel = 3, .stride = stride, .bias = true}), kRelu);
  };
  const auto channels = [&](std::size_t stage) {
    return static_cast<std::int64_t>(static_cast<double>(64 << stage) * row.width[stage]);
  };
  layer(options.scaled(std::min<std::int64_t>(64, channels(0))), 2);
  for (std::size_t stage = 0; stage < row.depth.size(); ++stage) {
    for (int i = 0; i < row.depth[stage]; ++i) {
      layer(options.scaled(channels(stage)), i == 0 ? 2 : 1);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_repvgg(ZooList& zoo) { add_rows(zoo, {.family = "repvgg"}, kNetworks, repvgg); }

}  // namespace fleetfit::graph
