#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  double width;
  std::int64_t last;  ///< channels before the classifier
};

constexpr Network kNetworks[] = {
    {"espnetv2_x0_5", 0.5, 1024}, {"espnetv2_x1_0", 1.0, 1024}, {"espnetv2_x1_25", 1.25, 1024},
    {"espnetv2_x1_5", 1.5, 1024}, {"espnetv2_x2_0", 2.0, 1280},
};

constexpr std::int64_t kBranches = 4;
constexpr PoolSpec kHalve{.kernel = 3, .stride = 2, .pad = 1};

/// With one slope per channel.
TensorId prelu(NetBuilder& net, TensorId x) {
  const auto slope = net.parameter("PRelu.slope", {net.channels(x), 1, 1}, 0.05, 0.25);
  return net.append(PRelu{}, {x, slope}, "PRelu");
}

TensorId conv_bn_prelu(NetBuilder& net, TensorId x, const ConvSpec& spec) {
  return prelu(net, net.conv_bn(x, spec));
}

/// Dilations of the four depthwise branches: 1, 2, … up to `largest`, and 1 for the rest.
std::array<std::int64_t, kBranches> dilations(std::int64_t largest) {
  std::array<std::int64_t, kBranches> all{};
  for (std::int64_t i = 0; i < kBranches; ++i) {
    all[static_cast<std::size_t>(i)] = i < largest ? i + 1 : 1;
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Reduces, convolves with several dilations, adds each result to the next (against gridding), and
/// merges them.
TensorId pyramid(NetBuilder& net, TensorId x, const ConvSpec& spec) {
  const std::int64_t part = spec.out / kBranches;
  const TensorId reduced =
      conv_bn_prelu(net, x, {.out = part, .groups = std::gcd(part, kBranches)});
  std::vector<TensorId> branches;
  for (const std::int64_t dilation : dilations(spec.dilation)) {
    const TensorId y = net.conv(
        reduced,
        {.out = part, .kernel = 3, .stride = spec.stride, .groups = part, .dilation = dilation});
    branches.push_back(branches.empty() ? y : net.add(y, branches.back()));
  }
  const TensorId all = prelu(net, net.batch_norm(net.concat(branches)));
  return net.conv_bn(all, {.out = spec.out, .groups = kBranches});
}

/// Halves height and width. The input image, pooled to the same size, is mixed in.
TensorId down(NetBuilder& net, TensorId x, TensorId image, const ConvSpec& spec) {
  const TensorId pooled = net.average_pool(x, kHalve);
  const TensorId added =
      pyramid(net, x, {.out = spec.out - net.channels(x), .stride = 2, .dilation = spec.dilation});
  const TensorId from_image = conv_bn_prelu(net, image, {.out = net.channels(image), .kernel = 3});
  const TensorId joined = net.concat({pooled, added});
  return prelu(net, net.add(joined, net.conv_bn(from_image, {.out = spec.out})));
}

TensorId espnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  constexpr std::array<int, 4> kDepth = {1, 4, 8, 4};
  const double width = row.width * options.width;
  const std::int64_t base = scaled_channels(32, width);
  TensorId image = net.average_pool(x, kHalve);
  x = conv_bn_prelu(net, x, {.out = std::min<std::int64_t>(base, 32), .kernel = 3, .stride = 2});
  for (std::size_t stage = 0; stage < kDepth.size(); ++stage) {
    const std::int64_t out = base << (stage + 1);
    const std::int64_t largest = 6 - static_cast<std::int64_t>(stage);
    image = net.average_pool(image, kHalve);
    x = down(net, x, image, {.out = out, .dilation = largest});
    for (int i = 1; i < kDepth[stage]; ++i) {
      x = prelu(net, net.add(pyramid(net, x, {.out = out, .dilation = largest - 1}), x));
    }
  }
  x = conv_bn_prelu(net, x, {.out = net.channels(x), .kernel = 3, .groups = net.channels(x)});
  x = conv_bn_prelu(net, x, {.out = options.scaled(row.last), .groups = kBranches});
  return classify(net, x, options.classes);
}

}  // namespace

void add_espnet_v2(ZooList& zoo) { add_rows(zoo, {.family = "espnet_v2"}, kNetworks, espnet); }

}  // namespace fleetfit::graph
