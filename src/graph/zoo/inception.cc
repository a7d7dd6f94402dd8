#include <initializer_list>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

constexpr PoolSpec kSamePool{.kernel = 3, .stride = 1, .pad = 1};
constexpr PoolSpec kHalvingPool{.kernel = 3, .stride = 2};

ConvSpec conv1x1(std::int64_t out) { return {.out = out}; }
ConvSpec conv3x3(std::int64_t out) { return {.out = out, .kernel = 3}; }
ConvSpec conv1xk(std::int64_t out, std::int64_t k) { return {.out = out, .kernel_w = k}; }
ConvSpec convkx1(std::int64_t out, std::int64_t k) {
  return {.out = out, .kernel = k, .kernel_w = 1};
}
ConvSpec valid3x3(std::int64_t out) { return {.out = out, .kernel = 3, .pad = 0}; }
ConvSpec down3x3(std::int64_t out) { return {.out = out, .kernel = 3, .stride = 2, .pad = 0}; }

/// Convolutions one after another, each with batch norm and ReLU.
struct Branches {
  NetBuilder& net;
  const NetOptions& options;

  TensorId chain(TensorId x, std::initializer_list<ConvSpec> specs) const {
    for (ConvSpec spec : specs) {
      spec.out = options.scaled(spec.out);
      x = net.conv_bn(x, spec, kRelu, 1e-3F);
    }
    return x;
  }
};

/// Channels of a module of GoogLeNet; the third branch has 3x3 kernels, as torchvision's has, where
/// the paper has 5x5.
struct Mixed {
  std::int64_t narrow;  ///< 1x1
  std::int64_t reduce3, out3;
  std::int64_t reduce5, out5;
  std::int64_t pooled;
};

TensorId mixed(NetBuilder& net, TensorId x, const Mixed& m, const Branches& branches) {
  return net.concat({branches.chain(x, {{.out = m.narrow}}),
                     branches.chain(x, {{.out = m.reduce3}, {.out = m.out3, .kernel = 3}}),
                     branches.chain(x, {{.out = m.reduce5}, {.out = m.out5, .kernel = 3}}),
                     branches.chain(net.max_pool(x, kSamePool), {{.out = m.pooled}})});
}

TensorId googlenet(NetBuilder& net, TensorId x, const NetOptions& options) {
  static constexpr Mixed kStage3[] = {{64, 96, 128, 16, 32, 32}, {128, 128, 192, 32, 96, 64}};
  static constexpr Mixed kStage4[] = {{192, 96, 208, 16, 48, 64},
                                      {160, 112, 224, 24, 64, 64},
                                      {128, 128, 256, 24, 64, 64},
                                      {112, 144, 288, 32, 64, 64},
                                      {256, 160, 320, 32, 128, 128}};
  static constexpr Mixed kStage5[] = {{256, 160, 320, 32, 128, 128}, {384, 192, 384, 48, 128, 128}};
  static constexpr PoolSpec kPool{.kernel = 3, .stride = 2, .ceil_mode = true};

  const Branches branches{net, options};
  x = branches.chain(x, {{.out = 64, .kernel = 7, .stride = 2}});
  x = net.max_pool(x, kPool);
  x = branches.chain(x, {{.out = 64}, {.out = 192, .kernel = 3}});
  x = net.max_pool(x, kPool);
  for (const Mixed& m : kStage3) x = mixed(net, x, m, branches);
  x = net.max_pool(x, kPool);
  for (const Mixed& m : kStage4) x = mixed(net, x, m, branches);
  x = net.max_pool(x, {.kernel = 2, .stride = 2, .ceil_mode = true});
  for (const Mixed& m : kStage5) x = mixed(net, x, m, branches);
  return classify(net, x, options.classes);
}

/// Inception v3's modules, in the order in which they follow each other.
TensorId module_35(NetBuilder& net, TensorId x, std::int64_t pooled, const Branches& branches) {
  return net.concat(
      {branches.chain(x, {{.out = 64}}), branches.chain(x, {{.out = 48}, {.out = 64, .kernel = 5}}),
       branches.chain(x, {{.out = 64}, {.out = 96, .kernel = 3}, {.out = 96, .kernel = 3}}),
       branches.chain(net.average_pool(x, kSamePool), {{.out = pooled}})});
}

TensorId reduction_to_17(NetBuilder& net, TensorId x, const Branches& branches) {
  return net.concat({branches.chain(x, {down3x3(384)}),
                     branches.chain(x, {{.out = 64}, {.out = 96, .kernel = 3}, down3x3(96)}),
                     net.max_pool(x, kHalvingPool)});
}

TensorId module_17(NetBuilder& net, TensorId x, std::int64_t inner, const Branches& branches) {
  return net.concat({branches.chain(x, {{.out = 192}}),
                     branches.chain(x, {{.out = inner}, conv1xk(inner, 7), convkx1(192, 7)}),
                     branches.chain(x, {{.out = inner},
                                        convkx1(inner, 7),
                                        conv1xk(inner, 7),
                                        convkx1(inner, 7),
                                        conv1xk(192, 7)}),
                     branches.chain(net.average_pool(x, kSamePool), {{.out = 192}})});
}

TensorId reduction_to_8(NetBuilder& net, TensorId x, const Branches& branches) {
  return net.concat(
      {branches.chain(x, {{.out = 192}, down3x3(320)}),
       branches.chain(x, {{.out = 192}, conv1xk(192, 7), convkx1(192, 7), down3x3(192)}),
       net.max_pool(x, kHalvingPool)});
}

TensorId module_8(NetBuilder& net, TensorId x, const Branches& branches) {
  const auto cross = [&](TensorId y) {
    return net.concat({branches.chain(y, {{.out = 384, .kernel = 1, .kernel_w = 3}}),
                       branches.chain(y, {{.out = 384, .kernel = 3, .kernel_w = 1}})});
  };
  return net.concat({branches.chain(x, {{.out = 320}}), cross(branches.chain(x, {{.out = 384}})),
                     cross(branches.chain(x, {{.out = 448}, {.out = 384, .kernel = 3}})),
                     branches.chain(net.average_pool(x, kSamePool), {{.out = 192}})});
}

TensorId inception_v3(NetBuilder& net, TensorId x, const NetOptions& options) {
  const Branches branches{net, options};
  x = branches.chain(x,
                     {down3x3(32), {.out = 32, .kernel = 3, .pad = 0}, {.out = 64, .kernel = 3}});
  x = net.max_pool(x, kHalvingPool);
  x = branches.chain(x, {{.out = 80}, {.out = 192, .kernel = 3, .pad = 0}});
  x = net.max_pool(x, kHalvingPool);
  for (const std::int64_t pooled : {32, 64, 64}) x = module_35(net, x, pooled, branches);
  x = reduction_to_17(net, x, branches);
  for (const std::int64_t inner : {128, 160, 160, 192}) x = module_17(net, x, inner, branches);
  x = reduction_to_8(net, x, branches);
  for (int i = 0; i < 2; ++i) x = module_8(net, x, branches);
  return classify(net, x, options.classes);
}

// --- Version 4, and with residuals ---

constexpr PoolSpec kMean{.kernel = 3, .stride = 1, .pad = 1, .count_include_pad = false};

/// Builds Inception v4 and Inception-ResNet v2 with one set of options.
struct Inception : Branches {
  TensorId v4(TensorId x) const {
    x = chain(x, {down3x3(32), valid3x3(32), conv3x3(64)});
    x = net.concat({net.max_pool(x, kHalvingPool), chain(x, {down3x3(96)})});
    x = net.concat({chain(x, {conv1x1(64), valid3x3(96)}),
                    chain(x, {conv1x1(64), conv1xk(64, 7), convkx1(64, 7), valid3x3(96)})});
    x = net.concat({chain(x, {down3x3(192)}), net.max_pool(x, kHalvingPool)});
    for (int i = 0; i < 4; ++i) x = v4_a(x);
    x = net.concat({chain(x, {down3x3(384)}), chain(x, {conv1x1(192), conv3x3(224), down3x3(256)}),
                    net.max_pool(x, kHalvingPool)});
    for (int i = 0; i < 7; ++i) x = v4_b(x);
    x = net.concat({chain(x, {conv1x1(192), down3x3(192)}),
                    chain(x, {conv1x1(256), conv1xk(256, 7), convkx1(320, 7), down3x3(320)}),
                    net.max_pool(x, kHalvingPool)});
    for (int i = 0; i < 3; ++i) x = v4_c(x);
    return classify(net, x, options.classes);
  }

  TensorId resnet_v2(TensorId x) const {
    x = net.max_pool(chain(x, {down3x3(32), valid3x3(32), conv3x3(64)}), kHalvingPool);
    x = net.max_pool(chain(x, {conv1x1(80), valid3x3(192)}), kHalvingPool);
    x = net.concat({chain(x, {conv1x1(96)}), chain(x, {conv1x1(48), {.out = 64, .kernel = 5}}),
                    chain(x, {conv1x1(64), conv3x3(96), conv3x3(96)}),
                    chain(net.average_pool(x, kMean), {conv1x1(64)})});
    for (int i = 0; i < 10; ++i) x = net.activate(residual_a(x), kRelu);
    x = net.concat({chain(x, {down3x3(384)}), chain(x, {conv1x1(256), conv3x3(256), down3x3(384)}),
                    net.max_pool(x, kHalvingPool)});
    for (int i = 0; i < 20; ++i) x = net.activate(residual_b(x), kRelu);
    x = net.concat({chain(x, {conv1x1(256), down3x3(384)}), chain(x, {conv1x1(256), down3x3(288)}),
                    chain(x, {conv1x1(256), conv3x3(288), down3x3(320)}),
                    net.max_pool(x, kHalvingPool)});
    for (int i = 0; i < 9; ++i) x = net.activate(residual_c(x, 0.2), kRelu);
    x = chain(residual_c(x, 1), {conv1x1(1536)});
    return classify(net, x, options.classes);
  }

  TensorId v4_a(TensorId x) const {
    return net.concat({chain(x, {conv1x1(96)}), chain(x, {conv1x1(64), conv3x3(96)}),
                       chain(x, {conv1x1(64), conv3x3(96), conv3x3(96)}),
                       chain(net.average_pool(x, kMean), {conv1x1(96)})});
  }

  TensorId v4_b(TensorId x) const {
    return net.concat(
        {chain(x, {conv1x1(384)}), chain(x, {conv1x1(192), conv1xk(224, 7), convkx1(256, 7)}),
         chain(x,
               {conv1x1(192), convkx1(192, 7), conv1xk(224, 7), convkx1(224, 7), conv1xk(256, 7)}),
         chain(net.average_pool(x, kMean), {conv1x1(128)})});
  }

  TensorId v4_c(TensorId x) const {
    const TensorId direct = chain(x, {conv1x1(256)});
    const TensorId near = chain(x, {conv1x1(384)});
    const TensorId far = chain(x, {conv1x1(384), convkx1(448, 3), conv1xk(512, 3)});
    return net.concat({direct, chain(near, {conv1xk(256, 3)}), chain(near, {convkx1(256, 3)}),
                       chain(far, {conv1xk(256, 3)}), chain(far, {convkx1(256, 3)}),
                       chain(net.average_pool(x, kMean), {conv1x1(256)})});
  }

  TensorId residual_a(TensorId x) const {
    return add_scaled(x,
                      {chain(x, {conv1x1(32)}), chain(x, {conv1x1(32), conv3x3(32)}),
                       chain(x, {conv1x1(32), conv3x3(48), conv3x3(64)})},
                      0.17);
  }

  TensorId residual_b(TensorId x) const {
    return add_scaled(
        x, {chain(x, {conv1x1(192)}), chain(x, {conv1x1(128), conv1xk(160, 7), convkx1(192, 7)})},
        0.1);
  }

  TensorId residual_c(TensorId x, double factor) const {
    return add_scaled(
        x, {chain(x, {conv1x1(192)}), chain(x, {conv1x1(192), conv1xk(224, 3), convkx1(256, 3)})},
        factor);
  }

  /// Residuals are damped, without which so wide a network does not train.
  TensorId add_scaled(TensorId x, const std::vector<TensorId>& branches, double factor) const {
    TensorId y = net.conv(net.concat(branches), {.out = net.channels(x), .bias = true});
    if (factor != 1) y = net.scale(y, factor);
    return net.add(y, x);
  }
};

TensorId inception_v4(NetBuilder& net, TensorId x, const NetOptions& options) {
  return Inception{net, options}.v4(x);
}

TensorId inception_resnet_v2(NetBuilder& net, TensorId x, const NetOptions& options) {
  return Inception{net, options}.resnet_v2(x);
}

// --- Xception ---

/// A depthwise and a 1x1 convolution with nothing in between.
TensorId separable(NetBuilder& net, TensorId x, std::int64_t out) {
  const std::int64_t in = net.channels(x);
  x = net.conv(x, {.out = in, .kernel = 3, .groups = in});
  return net.batch_norm(net.conv(x, {.out = out}));
}

/// Separable convolutions, each behind a ReLU, and max pooling if the block halves the image.
struct XceptionBlock {
  std::vector<std::int64_t> outs;
  std::int64_t stride = 1;
  bool relu_first = true;
};

TensorId xception_block(NetBuilder& net, TensorId x, const XceptionBlock& block,
                        const NetOptions& options) {
  TensorId y = x;
  for (std::size_t i = 0; i < block.outs.size(); ++i) {
    if (i > 0 || block.relu_first) y = net.activate(y, kRelu);
    y = separable(net, y, options.scaled(block.outs[i]));
  }
  if (block.stride == 1) return net.add(y, x);
  y = net.max_pool(y, {.kernel = 3, .stride = block.stride, .pad = 1});
  return net.add(y, net.conv_bn(x, {.out = net.channels(y), .stride = block.stride}));
}

TensorId xception(NetBuilder& net, TensorId x, const NetOptions& options) {
  x = net.conv_bn(x, {.out = options.scaled(32), .kernel = 3, .stride = 2, .pad = 0}, kRelu);
  x = net.conv_bn(x, {.out = options.scaled(64), .kernel = 3, .pad = 0}, kRelu);
  x = xception_block(net, x, {.outs = {128, 128}, .stride = 2, .relu_first = false}, options);
  x = xception_block(net, x, {.outs = {256, 256}, .stride = 2}, options);
  x = xception_block(net, x, {.outs = {728, 728}, .stride = 2}, options);
  for (int i = 0; i < 8; ++i) x = xception_block(net, x, {.outs = {728, 728, 728}}, options);
  x = xception_block(net, x, {.outs = {728, 1024}, .stride = 2}, options);
  for (const std::int64_t out : {1536, 2048}) {
    x = net.activate(separable(net, x, options.scaled(out)), kRelu);
  }
  return classify(net, x, options.classes);
}

}  // namespace

void add_inception(ZooList& zoo) {
  zoo.push_back({.name = "googlenet", .family = "inception", .build = googlenet});
  zoo.push_back(
      {.name = "inception_v3", .family = "inception", .image = 299, .build = inception_v3});
  zoo.push_back(
      {.name = "inception_v4", .family = "inception_v4", .image = 299, .build = inception_v4});
  zoo.push_back({.name = "inception_resnet_v2",
                 .family = "inception_v4",
                 .image = 299,
                 .build = inception_resnet_v2});
  zoo.push_back({.name = "xception", .family = "xception", .image = 299, .build = xception});
}

}  // namespace fleetfit::graph
