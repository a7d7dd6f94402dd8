#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

constexpr float kEpsilon = 1e-3F;

struct ProxylessNas {
  const char* name;
  std::int64_t stem;
  std::vector<SearchedStage> stages;
  std::int64_t head;
};

std::vector<ProxylessNas> networks() {
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

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const ProxylessNas& spec) {
  x = net.conv_bn(x, {.out = options.scaled(spec.stem), .kernel = 3, .stride = 2}, kRelu6,
                  kEpsilon);
  x = searched_stages(net, x, options, spec.stages, {.epsilon = kEpsilon});
  x = net.conv_bn(x, {.out = options.scaled(spec.head)}, kRelu6, kEpsilon);
  return classify(net, x, options.classes);
}

}  // namespace

void add_proxylessnas(ZooList& zoo) {
  add_rows(zoo, {.family = "proxylessnas"}, networks(), build);
}

}  // namespace fleetfit::graph
