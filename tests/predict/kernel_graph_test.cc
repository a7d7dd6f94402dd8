#include "fleetfit/predict/design_predictor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleetfit/graph/zoo.h"

namespace fleetfit::predict {
namespace {

TEST(KernelGraph, SaysKindAndSizeOfEveryKernelOfANetwork) {
  const auto graph = graph::build_zoo_network("squeezenet1_1", {.image = 64}).value();
  const auto plan =
      cost::deduce_kernels(graph, cost::KernelRules::builtin("plain").value()).value();
  const auto nodes = kernel_graph(graph, plan).value();
  const auto names = kernel_graph_features();
  ASSERT_TRUE(check_graph(nodes, names.size()));
  ASSERT_EQ(nodes.size(), plan.kernels.size());
  const auto flops =
      static_cast<std::size_t>(std::find(names.begin(), names.end(), "flops") - names.begin());
  ASSERT_LT(flops, names.size());
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    const auto kind = std::find(names.begin(), names.end(), "kind " + plan.kernels[k].kind);
    EXPECT_EQ(nodes.nodes[k * names.size() + static_cast<std::size_t>(kind - names.begin())], 1);
    if (plan.kernels[k].kind == "conv2d") {
      EXPECT_GT(nodes.nodes[k * names.size() + flops], 0);
    }
  }
  // All but the kernel that reads the image have another one before them.
  for (int k = 1; k < static_cast<int>(nodes.size()); ++k) {
    EXPECT_TRUE(std::any_of(nodes.edges.begin(), nodes.edges.end(), [&](const GraphEdge& edge) {
      return edge.to == k;
    })) << k;
  }
}

}  // namespace
}  // namespace fleetfit::predict
