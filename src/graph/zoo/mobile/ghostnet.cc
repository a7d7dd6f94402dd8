#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {
namespace {

struct Network {
  const char* name;
  double width;
};

constexpr Network kNetworks[] = {
    {"ghostnet_x0_5", 0.5}, {"ghostnet_x1_0", 1.0}, {"ghostnet_x1_3", 1.3}};

struct Bottleneck {
  std::int64_t kernel;
  std::int64_t expanded;
  std::int64_t out;
  bool squeeze;
  std::int64_t stride;
};

constexpr Bottleneck kBottlenecks[] = {
    {3, 16, 16, false, 1},   {3, 48, 24, false, 2},  {3, 72, 24, false, 1},
    {5, 72, 40, true, 2},    {5, 120, 40, true, 1},  {3, 240, 80, false, 2},
    {3, 200, 80, false, 1},  {3, 184, 80, false, 1}, {3, 184, 80, false, 1},
    {3, 480, 112, true, 1},  {3, 672, 112, true, 1}, {5, 672, 160, true, 2},
    {5, 960, 160, false, 1}, {5, 960, 160, true, 1}, {5, 960, 160, false, 1},
    {5, 960, 160, true, 1},
};

TensorId depthwise(NetBuilder& net, TensorId x, std::int64_t kernel, std::int64_t stride) {
  const std::int64_t channels = net.channels(x);
  return net.conv_bn(x, {.out = channels, .kernel = kernel, .stride = stride, .groups = channels});
}

/// Half of the channels by a convolution, the others as their cheap depthwise ghosts.
TensorId ghost(NetBuilder& net, TensorId x, std::int64_t out, const Activation& activation) {
  const std::int64_t half = out / 2;
  const TensorId primary = net.conv_bn(x, {.out = half}, activation);
  const TensorId cheap =
      net.conv_bn(primary, {.out = half, .kernel = 3, .groups = half}, activation);
  return net.concat({primary, cheap});
}

TensorId bottleneck(NetBuilder& net, TensorId x, const Bottleneck& spec, double width) {
  const std::int64_t out = scaled_channels(spec.out, width, 4);
  const std::int64_t expanded = scaled_channels(spec.expanded, width, 4);
  TensorId y = ghost(net, x, expanded, kRelu);
  if (spec.stride > 1) y = depthwise(net, y, spec.kernel, spec.stride);
  if (spec.squeeze) {
    y = squeeze_excite(net, y,
                       {.reduced = scaled_channels(expanded, 0.25, 4), .gate = kHardSigmoid});
  }
  y = ghost(net, y, out, {});
  if (spec.stride == 1 && net.channels(x) == out) return net.add(y, x);
  const TensorId shortcut = net.conv_bn(depthwise(net, x, spec.kernel, spec.stride), {.out = out});
  return net.add(y, shortcut);
}

TensorId ghostnet(NetBuilder& net, TensorId x, const NetOptions& options, const Network& row) {
  const double width = row.width * options.width;
  x = net.conv_bn(x, {.out = scaled_channels(16, width, 4), .kernel = 3, .stride = 2}, kRelu);
  for (const Bottleneck& spec : kBottlenecks) x = bottleneck(net, x, spec, width);
  x = net.conv_bn(x, {.out = scaled_channels(960, width, 4)}, kRelu);
  x = net.conv(net.global_average_pool(x), {.out = 1280, .bias = true});
  return net.linear(net.flatten(net.activate(x, kRelu)), options.classes);
}

}  // namespace

void add_ghostnet(ZooList& zoo) { add_rows(zoo, {.family = "ghostnet"}, kNetworks, ghostnet); }

}  // namespace fleetfit::graph
