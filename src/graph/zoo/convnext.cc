#include <array>

#include "graph/zoo/rows.h"
#include "graph/zoo/transformer.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  std::array<std::int64_t, 4> channels;
  std::array<int, 4> depth;
};

constexpr Network kNetworks[] = {
    {"convnext_tiny", {96, 192, 384, 768}, {3, 3, 9, 3}},
    {"convnext_small", {96, 192, 384, 768}, {3, 3, 27, 3}},
    {"convnext_base", {128, 256, 512, 1024}, {3, 3, 27, 3}},
    {"convnext_large", {192, 384, 768, 1536}, {3, 3, 27, 3}},
};

constexpr float kEpsilon = 1e-6F;

TensorId to_nhwc(NetBuilder& net, TensorId x) { return net.transpose(x, {0, 2, 3, 1}); }
TensorId to_nchw(NetBuilder& net, TensorId x) { return net.transpose(x, {0, 3, 1, 2}); }

TensorId channel_norm(NetBuilder& net, TensorId x) {
  return to_nchw(net, net.layer_norm(to_nhwc(net, x), kEpsilon));
}

TensorId block(NetBuilder& net, TensorId x, std::int64_t channels) {
  TensorId y = net.conv(x, {.out = channels, .kernel = 7, .groups = channels, .bias = true});
  y = net.layer_norm(to_nhwc(net, y), kEpsilon);
  y = to_nchw(net, mlp(net, y, 4 * channels, kGelu));
  const TensorId layer_scale = net.parameter("layer_scale", {channels, 1, 1}, 0.02, 0.1);
  return net.add(net.mul(layer_scale, y), x);
}

TensorId convnext(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  for (std::size_t stage = 0; stage < row.depth.size(); ++stage) {
    const std::int64_t channels = options.scaled(row.channels[stage]);
    if (stage == 0) {
      x = net.conv(x, {.out = channels, .kernel = 4, .stride = 4, .pad = 0, .bias = true});
      x = channel_norm(net, x);
    } else {
      x = channel_norm(net, x);
      x = net.conv(x, {.out = channels, .kernel = 2, .stride = 2, .pad = 0, .bias = true});
    }
    for (int i = 0; i < row.depth[stage]; ++i) x = block(net, x, channels);
  }
  x = net.flatten(net.global_average_pool(x));
  return net.linear(net.layer_norm(x, kEpsilon), options.classes);
}

}  // namespace

void add_convnext(ZooList& zoo) { add_rows(zoo, {.family = "convnext"}, kNetworks, convnext); }

}  // namespace fleetfit::graph
