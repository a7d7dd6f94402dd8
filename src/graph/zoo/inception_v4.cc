#include <initializer_list>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {
namespace {

constexpr PoolSpec kMaxPool{.kernel = 3, .stride = 2};
constexpr PoolSpec kMean{.kernel = 3, .stride = 1, .pad = 1, .count_include_pad = false};

ConvSpec conv1x1(std::int64_t out) { return {.out = out}; }
ConvSpec conv3x3(std::int64_t out) { return {.out = out, .kernel = 3}; }
ConvSpec conv1xk(std::int64_t out, std::int64_t k) { return {.out = out, .kernel_w = k}; }
ConvSpec convkx1(std::int64_t out, std::int64_t k) {
  return {.out = out, .kernel = k, .kernel_w = 1};
}
ConvSpec valid3x3(std::int64_t out) { return {.out = out, .kernel = 3, .pad = 0}; }
ConvSpec down3x3(std::int64_t out) { return {.out = out, .kernel = 3, .stride = 2, .pad = 0}; }

/// Builds Inception v4 and Inception-ResNet v2 with one set of options.
class Inception {
 public:
  Inception(NetBuilder& net, const NetOptions& options) : net_(net), options_(options) {}

  TensorId v4(TensorId x) {
    x = chain(x, {down3x3(32), valid3x3(32), conv3x3(64)});
    x = net_.concat({net_.max_pool(x, kMaxPool), chain(x, {down3x3(96)})});
    x = net_.concat({chain(x, {conv1x1(64), valid3x3(96)}),
                     chain(x, {conv1x1(64), conv1xk(64, 7), convkx1(64, 7), valid3x3(96)})});
    x = net_.concat({chain(x, {down3x3(192)}), net_.max_pool(x, kMaxPool)});
    for (int i = 0; i < 4; ++i) x = v4_a(x);
    x = net_.concat({chain(x, {down3x3(384)}), chain(x, {conv1x1(192), conv3x3(224), down3x3(256)}),
                     net_.max_pool(x, kMaxPool)});
    for (int i = 0; i < 7; ++i) x = v4_b(x);
    x = net_.concat({chain(x, {conv1x1(192), down3x3(192)}),
                     chain(x, {conv1x1(256), conv1xk(256, 7), convkx1(320, 7), down3x3(320)}),
                     net_.max_pool(x, kMaxPool)});
    for (int i = 0; i < 3; ++i) x = v4_c(x);
    return classify(net_, x, options_.classes);
  }

  TensorId resnet_v2(TensorId x) {
    x = net_.max_pool(chain(x, {down3x3(32), valid3x3(32), conv3x3(64)}), kMaxPool);
    x = net_.max_pool(chain(x, {conv1x1(80), valid3x3(192)}), kMaxPool);
    x = net_.concat({chain(x, {conv1x1(96)}), chain(x, {conv1x1(48), {.out = 64, .kernel = 5}}),
                     chain(x, {conv1x1(64), conv3x3(96), conv3x3(96)}),
                     chain(net_.average_pool(x, kMean), {conv1x1(64)})});
    for (int i = 0; i < 10; ++i) x = net_.activate(residual_a(x), kRelu);
    x = net_.concat({chain(x, {down3x3(384)}), chain(x, {conv1x1(256), conv3x3(256), down3x3(384)}),
                     net_.max_pool(x, kMaxPool)});
    for (int i = 0; i < 20; ++i) x = net_.activate(residual_b(x), kRelu);
    x = net_.concat({chain(x, {conv1x1(256), down3x3(384)}), chain(x, {conv1x1(256), down3x3(288)}),
                     chain(x, {conv1x1(256), conv3x3(288), down3x3(320)}),
                     net_.max_pool(x, kMaxPool)});
    for (int i = 0; i < 9; ++i) x = net_.activate(residual_c(x, 0.2), kRelu);
    x = chain(residual_c(x, 1), {conv1x1(1536)});
    return classify(net_, x, options_.classes);
  }

 private:
  TensorId chain(TensorId x, std::initializer_list<ConvSpec> convs) {
    for (ConvSpec spec : convs) {
      spec.out = options_.scaled(spec.out);
      x = net_.conv_bn(x, spec, kRelu, 1e-3F);
    }
    return x;
  }

  TensorId v4_a(TensorId x) {
    return net_.concat({chain(x, {conv1x1(96)}), chain(x, {conv1x1(64), conv3x3(96)}),
                        chain(x, {conv1x1(64), conv3x3(96), conv3x3(96)}),
                        chain(net_.average_pool(x, kMean), {conv1x1(96)})});
  }

  TensorId v4_b(TensorId x) {
    return net_.concat(
        {chain(x, {conv1x1(384)}), chain(x, {conv1x1(192), conv1xk(224, 7), convkx1(256, 7)}),
         chain(x,
               {conv1x1(192), convkx1(192, 7), conv1xk(224, 7), convkx1(224, 7), conv1xk(256, 7)}),
         chain(net_.average_pool(x, kMean), {conv1x1(128)})});
  }

  TensorId v4_c(TensorId x) {
    const TensorId direct = chain(x, {conv1x1(256)});
    const TensorId near = chain(x, {conv1x1(384)});
    const TensorId far = chain(x, {conv1x1(384), convkx1(448, 3), conv1xk(512, 3)});
    return net_.concat({direct, chain(near, {conv1xk(256, 3)}), chain(near, {convkx1(256, 3)}),
                        chain(far, {conv1xk(256, 3)}), chain(far, {convkx1(256, 3)}),
                        chain(net_.average_pool(x, kMean), {conv1x1(256)})});
  }

  TensorId residual_a(TensorId x) {
    return add_scaled(x,
                      {chain(x, {conv1x1(32)}), chain(x, {conv1x1(32), conv3x3(32)}),
                       chain(x, {conv1x1(32), conv3x3(48), conv3x3(64)})},
                      0.17);
  }

  TensorId residual_b(TensorId x) {
    return add_scaled(
        x, {chain(x, {conv1x1(192)}), chain(x, {conv1x1(128), conv1xk(160, 7), convkx1(192, 7)})},
        0.1);
  }

  TensorId residual_c(TensorId x, double factor) {
    return add_scaled(
        x, {chain(x, {conv1x1(192)}), chain(x, {conv1x1(192), conv1xk(224, 3), convkx1(256, 3)})},
        factor);
  }

  /// Residuals are damped, without which so wide a network does not train.
  TensorId add_scaled(TensorId x, const std::vector<TensorId>& branches, double factor) {
    TensorId y = net_.conv(net_.concat(branches), {.out = net_.channels(x), .bias = true});
    if (factor != 1) y = net_.scale(y, factor);
    return net_.add(y, x);
  }

  NetBuilder& net_;
  const NetOptions& options_;
};

}  // namespace

void add_inception_v4(ZooList& zoo) {
  zoo.push_back({.name = "inception_v4",
                 .family = "inception_v4",
                 .image = 299,
                 .build = [](NetBuilder& net, TensorId x, const NetOptions& options) {
                   return Inception(net, options).v4(x);
                 }});
  zoo.push_back({.name = "inception_resnet_v2",
                 .family = "inception_v4",
                 .image = 299,
                 .build = [](NetBuilder& net, TensorId x, const NetOptions& options) {
                   return Inception(net, options).resnet_v2(x);
                 }});
}

}  // namespace fleetfit::graph
