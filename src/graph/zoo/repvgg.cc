#include <algorithm>
#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

/// Networks as they are deployed: the branches of training are merged into one convolution.
namespace fleetfit::graph {
namespace {

/// Channels of a stage, of which there are 64, 128, 256 and 512 as published.
std::int64_t widened(const std::array<double, 4>& width, std::size_t stage) {
  return static_cast<std::int64_t>(static_cast<double>(64 << stage) * width[stage]);
}

struct RepVgg {
  const char* name;
  std::array<int, 4> depth;
  std::array<double, 4> width;  ///< multiplies 64, 128, 256, 512
};

constexpr RepVgg kRepVggs[] = {
    {"repvgg_a0", {2, 4, 14, 1}, {0.75, 0.75, 0.75, 2.5}},
    {"repvgg_a1", {2, 4, 14, 1}, {1, 1, 1, 2.5}},
    {"repvgg_a2", {2, 4, 14, 1}, {1.5, 1.5, 1.5, 2.75}},
    {"repvgg_b0", {4, 6, 16, 1}, {1, 1, 1, 2.5}},
    {"repvgg_b1", {4, 6, 16, 1}, {2, 2, 2, 4}},
};

TensorId repvgg(NetBuilder& net, TensorId x, const NetOptions& options, const RepVgg& row) {
  const auto layer = [&](std::int64_t out, std::int64_t stride) {
    x = net.activate(net.conv(x, {.out = out, .kernel = 3, .stride = stride, .bias = true}), kRelu);
  };
  layer(options.scaled(std::min<std::int64_t>(64, widened(row.width, 0))), 2);
  for (std::size_t stage = 0; stage < row.depth.size(); ++stage) {
    for (int i = 0; i < row.depth[stage]; ++i) {
      layer(options.scaled(widened(row.width, stage)), i == 0 ? 2 : 1);
    }
  }
  return classify(net, x, options.classes);
}

// --- MobileOne ---

constexpr std::array<int, 4> kMobileOneDepth = {2, 8, 10, 1};

struct MobileOne {
  const char* name;
  std::array<double, 4> width;   ///< multiplies 64, 128, 256, 512
  std::array<int, 4> squeezing;  ///< blocks with squeeze-excite at the end of each stage
};

constexpr MobileOne kMobileOnes[] = {
    {"mobileone_s0", {0.75, 1, 1, 2}, {}},
    {"mobileone_s1", {1.5, 1.5, 2, 2.5}, {}},
    {"mobileone_s2", {1.5, 2, 2.5, 4}, {}},
    {"mobileone_s3", {2, 2.5, 3, 4}, {}},
    {"mobileone_s4", {3, 3.5, 3.5, 4}, {0, 0, 5, 1}},
};

TensorId mobileone_layer(NetBuilder& net, TensorId x, ConvSpec spec, bool squeeze) {
  spec.bias = true;
  x = squeeze_excite(net, net.conv(x, spec), {.reduced = squeeze ? spec.out / 16 : 0});
  return net.activate(x, kRelu);
}

TensorId mobileone(NetBuilder& net, TensorId x, const NetOptions& options, const MobileOne& row) {
  const std::int64_t stem = options.scaled(std::min<std::int64_t>(64, widened(row.width, 0)));
  x = mobileone_layer(net, x, {.out = stem, .kernel = 3, .stride = 2}, false);
  for (std::size_t stage = 0; stage < kMobileOneDepth.size(); ++stage) {
    for (int i = 0; i < kMobileOneDepth[stage]; ++i) {
      const bool squeeze = i >= kMobileOneDepth[stage] - row.squeezing[stage];
      const std::int64_t in = net.channels(x);
      x = mobileone_layer(net, x, {.out = in, .kernel = 3, .stride = i == 0 ? 2 : 1, .groups = in},
                          squeeze);
      x = mobileone_layer(net, x, {.out = options.scaled(widened(row.width, stage))}, squeeze);
    }
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_repvgg(ZooList& zoo) {
  add_rows(zoo, {.family = "repvgg"}, kRepVggs, repvgg);
  add_rows(zoo, {.family = "mobileone"}, kMobileOnes, mobileone);
}

}  // namespace fleetfit::graph
