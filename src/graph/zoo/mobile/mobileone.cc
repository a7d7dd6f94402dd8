#include <algorithm>
#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

constexpr std::array<int, 4> kDepth = {2, 8, 10, 1};

struct Network {
  const char* name;
  std::array<double, 4> width;   ///< multiplies 64, 128, 256, 512
  std::array<int, 4> squeezing;  ///< blocks with squeeze-excite at the end of each stage
};

constexpr Network kNetworks[] = {
    {"mobileone_s0", {0.75, 1, 1, 2}, {}},
    {"mobileone_s1", {1.5, 1.5, 2, 2.5}, {}},
    {"mobileone_s2", {1.5, 2, 2.5, 4}, {}},
    {"mobileone_s3", {2, 2.5, 3, 4}, {}},
    {"mobileone_s4", {3, 3.5, 3.5, 4}, {0, 0, 5, 1}},
};

/// As deployed: the branches of training are merged into one convolution.
TensorId layer(NetBuilder& net, TensorId x, ConvSpec spec, bool squeeze) {
  spec.bias = true;
  x = squeeze_excite(net, net.conv(x, spec), {.reduced = squeeze ? spec.out / 16 : 0});
  return net.activate(x, kRelu);
}

TensorId mobileone(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const auto channels = [&](std::size_t stage) {
    return static_cast<std::int64_t>(static_cast<double>(64 << stage) * row.width[stage]);
  };
  const std::int64_t stem = options.scaled(std::min<std::int64_t>(64, channels(0)));
  x = layer(net, x, {.out = stem, .kernel = 3, .stride = 2}, false);
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    for (int i = 0; i < kDepth[stage]; ++i) {
      const bool squeeze = i >= kDepth[stage] - row.squeezing[stage];
      const std::int64_t in = net.channels(x);
      x = layer(net, x, {.out = in, .kernel = 3, .stride = i == 0 ? 2 : 1, .groups = in}, squeeze);
      x = layer(net, x, {.out = options.scaled(channels(stage))}, squeeze);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_mobileone(ZooList& zoo) { add_rows(zoo, {.family = "mobileone"}, kNetworks, mobileone); }

}  // namespace fleetfit::graph
