#include <array>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

constexpr float kEpsilon = 1e-3F;

struct Dpn {
  const char* name;
  std::int64_t stem;
  std::int64_t stem_kernel;
  std::int64_t residual;  ///< channels of the residual path in the first stage; doubles with each
  std::int64_t inner;     ///< of the 3x3 convolutions there; doubles too
  std::int64_t groups;
  std::array<int, 4> depths;
  std::array<std::int64_t, 4> growths;  ///< channels that each block adds to the dense path
};

constexpr Dpn kDpns[] = {
    {"dpn68", 10, 3, 64, 128, 32, {3, 4, 12, 3}, {16, 32, 32, 64}},
    {"dpn92", 64, 7, 256, 96, 32, {3, 4, 20, 3}, {16, 32, 24, 128}},
    {"dpn98", 96, 7, 256, 160, 40, {3, 6, 20, 3}, {16, 32, 32, 128}},
};

/// The residual path and the dense one.
struct Paths {
  TensorId residual;
  TensorId dense;
};

struct DualBlock {
  std::int64_t residual = 0;
  std::int64_t inner = 0;
  std::int64_t growth = 0;
  std::int64_t groups = 0;
  std::int64_t stride = 1;
};

TensorId norm_relu_conv(NetBuilder& net, TensorId x, const ConvSpec& spec) {
  return net.conv(net.activate(net.batch_norm(x, kEpsilon), kRelu), spec);
}

Paths cut(NetBuilder& net, TensorId x, std::int64_t residual) {
  const auto parts = net.split(x, {residual, net.channels(x) - residual});
  return {parts[0], parts[1]};
}

Paths extend(NetBuilder& net, TensorId in, const Paths& shortcut, const DualBlock& block) {
  TensorId y = norm_relu_conv(net, in, {.out = block.inner});
  y = norm_relu_conv(
      net, y, {.out = block.inner, .kernel = 3, .stride = block.stride, .groups = block.groups});
  y = norm_relu_conv(net, y, {.out = block.residual + block.growth});
  const Paths grown = cut(net, y, block.residual);
  return {net.add(shortcut.residual, grown.residual), net.concat({shortcut.dense, grown.dense})};
}

/// Opens the two paths of a stage with a 1x1 convolution.
Paths open_stage(NetBuilder& net, TensorId x, const DualBlock& block) {
  const TensorId projected =
      norm_relu_conv(net, x, {.out = block.residual + 2 * block.growth, .stride = block.stride});
  return extend(net, x, cut(net, projected, block.residual), block);
}

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const Dpn& spec) {
  x = net.conv_bn(x, {.out = options.scaled(spec.stem), .kernel = spec.stem_kernel, .stride = 2},
                  kRelu, kEpsilon);
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (std::size_t stage = 0; stage < spec.depths.size(); ++stage) {
    const std::int64_t per_group = spec.inner / spec.groups << stage;
    DualBlock block{.residual = options.scaled(spec.residual << stage),
                    .inner = scaled_channels(per_group, options.width, 1) * spec.groups,
                    .growth = options.scaled(spec.growths[stage]),
                    .groups = spec.groups,
                    .stride = stage == 0 ? 1 : 2};
    Paths paths = open_stage(net, x, block);
    block.stride = 1;
    for (int i = 1; i < spec.depths[stage]; ++i) {
      paths = extend(net, net.concat({paths.residual, paths.dense}), paths, block);
    }
    x = net.concat({paths.residual, paths.dense});
  }
  return classify(net, net.activate(net.batch_norm(x, kEpsilon), kRelu), options.classes);
}

}  // namespace

void add_dpn(ZooList& zoo) { add_rows(zoo, {.family = "dpn"}, kDpns, build); }

}  // namespace fleetfit::graph
