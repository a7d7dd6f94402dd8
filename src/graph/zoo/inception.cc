#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/families.h"

namespace fleetfit::graph {

namespace {

constexpr float kEpsilon = 1e-3F;
constexpr PoolSpec kSamePool{.kernel = 3, .stride = 1, .pad = 1};
constexpr PoolSpec kHalvingPool{.kernel = 3, .stride = 2};

/// Convolutions one after another, each with batch norm and ReLU.
class Branches {
 public:
  Branches(NetBuilder& net, const NetOptions& options) : net_(net), options_(options) {}

  TensorId chain(TensorId x, const std::vector<ConvSpec>& specs) const {
    for (ConvSpec spec : specs) {
      spec.out = options_.scaled(spec.out);
      x = net_.conv_bn(x, spec, kRelu, kEpsilon);
    }
    return x;
  }

 private:
  NetBuilder& net_;
  const NetOptions& options_;
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

  const Branches branches(net, options);
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

ConvSpec row7(std::int64_t out) { return {.out = out, .kernel = 1, .kernel_w = 7}; }
ConvSpec column7(std::int64_t out) { return {.out = out, .kernel = 7, .kernel_w = 1}; }
ConvSpec halving3(std::int64_t out) { return {.out = out, .kernel = 3, .stride = 2, .pad = 0}; }

/// Inception v3's modules, in the order in which they follow each other.
TensorId module_35(NetBuilder& net, TensorId x, std::int64_t pooled, const Branches& branches) {
  return net.concat(
      {branches.chain(x, {{.out = 64}}), branches.chain(x, {{.out = 48}, {.out = 64, .kernel = 5}}),
       branches.chain(x, {{.out = 64}, {.out = 96, .kernel = 3}, {.out = 96, .kernel = 3}}),
       branches.chain(net.average_pool(x, kSamePool), {{.out = pooled}})});
}

TensorId reduction_to_17(NetBuilder& net, TensorId x, const Branches& branches) {
  return net.concat({branches.chain(x, {halving3(384)}),
                     branches.chain(x, {{.out = 64}, {.out = 96, .kernel = 3}, halving3(96)}),
                     net.max_pool(x, kHalvingPool)});
}

TensorId module_17(NetBuilder& net, TensorId x, std::int64_t inner, const Branches& branches) {
  return net.concat(
      {branches.chain(x, {{.out = 192}}),
       branches.chain(x, {{.out = inner}, row7(inner), column7(192)}),
       branches.chain(x, {{.out = inner}, column7(inner), row7(inner), column7(inner), row7(192)}),
       branches.chain(net.average_pool(x, kSamePool), {{.out = 192}})});
}

TensorId reduction_to_8(NetBuilder& net, TensorId x, const Branches& branches) {
  return net.concat({branches.chain(x, {{.out = 192}, halving3(320)}),
                     branches.chain(x, {{.out = 192}, row7(192), column7(192), halving3(192)}),
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
  const Branches branches(net, options);
  x = branches.chain(x,
                     {halving3(32), {.out = 32, .kernel = 3, .pad = 0}, {.out = 64, .kernel = 3}});
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

}  // namespace

void add_inception(ZooList& zoo) {
  zoo.push_back({.name = "googlenet", .family = "inception", .build = googlenet});
  zoo.push_back(
      {.name = "inception_v3", .family = "inception", .image = 299, .build = inception_v3});
}

}  // namespace fleetfit::graph
