#include <vector>

#include "fleetfit/graph/blocks.h"
#include "graph/zoo/rows.h"

namespace fleetfit::graph {

namespace {

struct FbNet {
  const char* name;
  std::vector<SearchedStage> stages;
  std::int64_t head;
};

std::vector<FbNet> networks() {
  return {
      {"fbnet_a",
       {{24, 2, {{3, 3}, {3, 1}}},
        {32, 2, {{5, 6}, {3, 3}, {5, 1}, {3, 3}}},
        {64, 2, {{5, 6}, {5, 3}, {5, 1, 2}, {5, 6}}},
        {112, 1, {{3, 6}, {5, 1, 2}, {5, 3}, {3, 1, 2}}},
        {184, 2, {{5, 6}, {5, 6}, {5, 3}, {5, 6}}},
        {352, 1, {{5, 6}}}},
       1504},
      {"fbnet_b",
       {{16, 1, {{3, 1}}},
        {24, 2, {{3, 6}, {5, 1}, {3, 1}, {3, 1}}},
        {32, 2, {{5, 6}, {5, 3}, {3, 6}, {5, 6}}},
        {64, 2, {{5, 6}, {5, 1}, {5, 3}}},
        {112, 1, {{5, 6}, {3, 1}, {5, 1}, {5, 3}}},
        {184, 2, {{5, 6}, {5, 1}, {5, 6}, {5, 6}}},
        {352, 1, {{3, 6}}}},
       1984},
      {"fbnet_c",
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

TensorId build(NetBuilder& net, TensorId x, const NetOptions& options, const FbNet& spec) {
  x = net.conv_bn(x, {.out = options.scaled(16), .kernel = 3, .stride = 2}, kRelu);
  x = searched_stages(net, x, options, spec.stages,
                      {.activation = kRelu, .expand_unwidened = true});
  return classify(net, net.conv_bn(x, {.out = options.scaled(spec.head)}, kRelu), options.classes);
}

}  // namespace

void add_fbnet(ZooList& zoo) { add_rows(zoo, {.family = "fbnet"}, networks(), build); }

}  // namespace fleetfit::graph
