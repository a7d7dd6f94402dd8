#include <algorithm>
#include <array>
#include <vector>

#include "fleetfit/graph/once_for_all.h"
#include "graph/zoo/families.h"

/// Networks that an architecture search wrote down, layer by layer.
namespace fleetfit::graph {
namespace {

// --- FBNet and ProxylessNAS ---

struct SearchedNet {
  const char* name;
  std::int64_t stem;
  std::vector<SearchedStage> stages;
  std::int64_t head;
};

std::vector<SearchedNet> fbnets() {
  return {
      {"fbnet_a",
       16,
       {{24, 2, {{3, 3}, {3, 1}}},
        {32, 2, {{5, 6}, {3, 3}, {5, 1}, {3, 3}}},
        {64, 2, {{5, 6}, {5, 3}, {5, 1, 2}, {5, 6}}},
        {112, 1, {{3, 6}, {5, 1, 2}, {5, 3}, {3, 1, 2}}},
        {184, 2, {{5, 6}, {5, 6}, {5, 3}, {5, 6}}},
        {352, 1, {{5, 6}}}},
       1504},
      {"fbnet_b",
       16,
       {{16, 1, {{3, 1}}},
        {24, 2, {{3, 6}, {5, 1}, {3, 1}, {3, 1}}},
        {32, 2, {{5, 6}, {5, 3}, {3, 6}, {5, 6}}},
        {64, 2, {{5, 6}, {5, 1}, {5, 3}}},
        {112, 1, {{5, 6}, {3, 1}, {5, 1}, {5, 3}}},
        {184, 2, {{5, 6}, {5, 1}, {5, 6}, {5, 6}}},
        {352, 1, {{3, 6}}}},
       1984},
      {"fbnet_c",
       16,
       {{16, 1, {{3, 1}}},
        {24, 2, {{3, 6}, {3, 1}, {3, 1}}},
        {32, 2, {{5, 6}, {5, 3}, {5, 6}, {3, 6}}},
        {64, 2, {{5, 6}, {5, 3}, {5, 6}, {5, 6}}},
        {112, 1, {{5, 6}, {5, 6}, {5, 6}, {5, 3}}},
        {184, 2, {{5, 6}, {5, 6}, {5, 6}, {5, 6}}},
        {352, 1, {{3, 6}}}},
       1984},
  };
}

std::vector<SearchedNet> proxylessnas() {
  return {
      {"proxylessnas_cpu",
       40,
       {{24, 1, {{3, 1}}},
        {32, 2, {{3, 6}, {3, 3}, {3, 3}, {3, 3}}},
        {48, 2, {{3, 6}, {3, 3}, {3, 3}, {5, 3}}},
        {88, 2, {{3, 6}, {3, 3}}},
        {104, 1, {{5, 6}, {3, 3}, {3, 3}, {3, 3}}},
        {216, 2, {{5, 6}, {5, 3}, {5, 3}, {3, 3}}},
        {360, 1, {{5, 6}}}},
       1432},
      {"proxylessnas_gpu",
       40,
       {{24, 1, {{3, 1}}},
        {32, 2, {{5, 3}}},
        {56, 2, {{7, 3}, {3, 3}}},
        {112, 2, {{7, 6}, {5, 3}}},
        {128, 1, {{5, 6}, {3, 3}, {5, 3}}},
        {256, 2, {{7, 6}, {7, 6}, {7, 6}, {5, 6}}},
        {432, 1, {{7, 6}}}},
       1728},
      {"proxylessnas_mobile",
       32,
       {{16, 1, {{3, 1}}},
        {32, 2, {{5, 3}, {3, 3}}},
        {40, 2, {{7, 3}, {3, 3}, {5, 3}, {5, 3}}},
        {80, 2, {{7, 6}, {5, 3}, {5, 3}, {5, 3}}},
        {96, 1, {{5, 6}, {5, 3}, {5, 3}, {5, 3}}},
        {192, 2, {{7, 6}, {7, 6}, {7, 3}, {7, 3}}},
        {320, 1, {{7, 6}}}},
       1280},
  };
}

/// `common` gives what is the same in all blocks, and in stem and head.
TensorId searched(NetBuilder& net, TensorId x, const NetOptions& options, const SearchedNet& row,
                  const InvertedResidual& common) {
  const auto conv = [&](ConvSpec spec) {
    spec.out = options.scaled(spec.out);
    x = net.conv_bn(x, spec, common.activation, common.epsilon);
  };
  conv({.out = row.stem, .kernel = 3, .stride = 2});
  x = searched_stages(net, x, options, row.stages, common);
  conv({.out = row.head});
  return classify(net, x, options.classes);
}

void add_searched_rows(ZooList& zoo, const char* family, const std::vector<SearchedNet>& rows,
                       const InvertedResidual& common) {
  add_rows(zoo, {.family = family}, rows,
           [common](NetBuilder& net, TensorId x, const NetOptions& options,
                    const SearchedNet& row) { return searched(net, x, options, row, common); });
}

// --- Once for all ---

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

TensorId once_for_all(NetBuilder& net, TensorId x, const NetOptions& options,
                      const Subnet& subnet) {
  return once_for_all_mobilenet_v3(
      net, x, {.width = subnet.width * options.width, .stages = subnet.stages}, options.classes);
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

void add_searched(ZooList& zoo) {
  add_searched_rows(zoo, "fbnet", fbnets(), {.activation = kRelu, .expand_unwidened = true});
  add_searched_rows(zoo, "proxylessnas", proxylessnas(), {.epsilon = 1e-3F});
  add_rows(zoo, {.family = "once_for_all"}, subnets(), once_for_all);
}

}  // namespace fleetfit::graph
