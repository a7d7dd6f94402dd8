#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "graph/zoo/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

struct Layer {
  std::int64_t kernel;
  std::int64_t expansion;
};

using Layers = std::vector<Layer>;

/// What is the same in all subnets of the MobileNetV3 supernet.
struct Stage {
  std::int64_t out = 0;
  std::int64_t stride = 1;
  Activation activation;
  bool se = false;
};

constexpr std::array<Stage, 5> kStages{{
    {24, 2, kRelu, false},
    {40, 2, kRelu, true},
    {80, 2, kHardSwish, false},
    {112, 1, kHardSwish, true},
    {160, 2, kHardSwish, true},
}};

struct Subnet {
  const char* name;
  std::int64_t image;
  double width;
  std::array<Layers, 5> stages;
};

std::array<Layers, 5> uniform(std::size_t depth, Layer layer) {
  std::array<Layers, 5> stages;
  stages.fill(Layers(depth, layer));
  return stages;
}

/// The supernet's corners and middle, and networks that its authors specialized: for a budget of
/// 595 million multiply-accumulates, and for 31 and 22 ms on a Samsung Note8.
std::vector<Subnet> subnets() {
  return {
      {"ofa_mbv3_max", 224, 1, uniform(4, {7, 6})},
      {"ofa_mbv3_d3_e4_k5", 224, 1, uniform(3, {5, 4})},
      {"ofa_mbv3_min", 224, 1, uniform(2, {3, 3})},
      {"ofa_mbv3_flops_595m",
       236,
       1.2,
       {{{{3, 3}, {5, 4}, {3, 3}},
         {{5, 4}, {5, 4}, {3, 6}, {5, 3}},
         {{7, 6}, {5, 6}, {3, 3}, {5, 4}},
         {{3, 6}, {5, 6}, {7, 6}, {3, 4}},
         {{3, 6}, {3, 6}, {5, 6}, {3, 3}}}}},
      {"ofa_mbv3_note8_31ms",
       152,
       1,
       {{{{5, 3}, {3, 3}},
         {{5, 4}, {5, 3}},
         {{3, 4}, {3, 4}, {5, 4}},
         {{3, 4}, {5, 3}, {7, 4}},
         {{3, 6}, {3, 3}, {5, 3}, {5, 3}}}}},
      {"ofa_mbv3_note8_22ms",
       140,
       1,
       {{{{3, 3}, {3, 3}},
         {{5, 3}, {5, 3}},
         {{7, 4}, {3, 3}},
         {{5, 3}, {3, 4}},
         {{3, 6}, {7, 6}}}}},
  };
}

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const Subnet& subnet) {
  const double width = subnet.width * options.width;
  const std::int64_t stem = scaled_channels(16, width);
  x = net.conv_bn(x, {.out = stem, .kernel = 3, .stride = 2}, kHardSwish);
  x = inverted_residual(net, x, {.out = stem, .activation = kRelu});
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    const Stage& stage = kStages[i];
    std::int64_t stride = stage.stride;
    for (const Layer& layer : subnet.stages[i]) {
      const std::int64_t expanded = layer.expansion * net.channels(x);
      const std::int64_t reduced = stage.se ? scaled_channels(expanded / 4, 1) : 0;
      x = inverted_residual(net, x,
                            {.kernel = layer.kernel,
                             .stride = stride,
                             .expanded = expanded,
                             .out = scaled_channels(stage.out, width),
                             .se = {.reduced = reduced, .gate = kHardSigmoid},
                             .activation = stage.activation});
      stride = 1;
    }
  }
  x = net.conv_bn(x, {.out = 6 * net.channels(x)}, kHardSwish);
  x = net.conv(net.global_average_pool(x), {.out = scaled_channels(1280, std::max(1.0, width))});
  return net.linear(net.flatten(net.activate(x, kHardSwish)), options.classes);
}

}  // namespace

void add_once_for_all(ZooList& zoo) {
  for (const Subnet& subnet : subnets()) {
    add_rows(zoo, {.family = "once_for_all", .image = subnet.image}, std::span(&subnet, 1), build);
  }
}

}  // namespace fleetfit::graph
