#include "fleetfit/graph/once_for_all.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

using Layers = std::vector<SearchedLayer>;

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

std::array<Layers, 5> uniform(std::size_t depth, SearchedLayer layer) {
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
  return once_for_all_mobilenet_v3(
      net, x, {.width = subnet.width * options.width, .stages = subnet.stages}, options.classes);
}

TensorId elastic_block(NetBuilder& net, TensorId x, const SearchedLayer& layer,
                       const Stage& stage) {
  const std::int64_t expanded = layer.expansion * net.channels(x);
  const std::int64_t reduced = stage.se ? scaled_channels(expanded / 4, 1) : 0;
  return inverted_residual(net, x,
                           {.kernel = layer.kernel,
                            .stride = stage.stride,
                            .expanded = expanded,
                            .out = stage.out,
                            .se = {.reduced = reduced, .gate = kHardSigmoid},
                            .activation = stage.activation});
}

}  // namespace

TensorId once_for_all_mobilenet_v3(NetBuilder& net, TensorId image, const OnceForAllSubnet& subnet,
                                   std::int64_t classes) {
  const std::int64_t stem = scaled_channels(16, subnet.width);
  TensorId x = net.conv_bn(image, {.out = stem, .kernel = 3, .stride = 2}, kHardSwish);
  x = inverted_residual(net, x, {.out = stem, .activation = kRelu});
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    Stage stage = kStages[i];
    stage.out = scaled_channels(stage.out, subnet.width);
    for (const SearchedLayer& layer : subnet.stages[i]) {
      x = elastic_block(net, x, layer, stage);
      stage.stride = 1;
    }
  }
  x = net.conv_bn(x, {.out = 6 * net.channels(x)}, kHardSwish);
  const std::int64_t hidden = scaled_channels(1280, std::max(1.0, subnet.width));
  x = net.conv(net.global_average_pool(x), {.out = hidden});
  return net.linear(net.flatten(net.activate(x, kHardSwish)), classes);
}

void add_once_for_all(ZooList& zoo) {
  for (const Subnet& subnet : subnets()) {
    add_rows(zoo, {.family = "once_for_all", .image = subnet.image}, std::span(&subnet, 1), build);
  }
}

}  // namespace fleetfit::graph
