#include "fleetfit/cost/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::cost {
namespace {

using namespace graph;
using testing::ElementsAre;

// A convolution whose result two branches read, one of them through ReLU; both are added.
Graph fork() {
  NetBuilder net("net", 1);
  const auto stem = net.conv(net.input("x", {1, 4, 8, 8}), {.out = 4});   // node 0
  const auto left = net.conv(stem, {.out = 4});                           // node 1
  const auto right = net.activate(stem, {.kind = ActivationKind::relu});  // node 2
  net.output(net.add(left, right), "y");                                  // node 3
  return std::move(net).finish().value();
}

TEST(KernelEdges, FollowTheData) {
  const auto graph = fork();
  ASSERT_EQ(graph.nodes.size(), 4u);
  const std::vector<Kernel> alone = {
      {"conv2d", {0}}, {"conv2d", {1}}, {"elementwise", {2}}, {"elementwise", {3}}};
  EXPECT_THAT(kernel_edges(graph, alone),
              ElementsAre(KernelEdge{0, 1}, KernelEdge{0, 2}, KernelEdge{1, 3}, KernelEdge{2, 3}));
}

TEST(KernelEdges, OfFusedNodesAreThoseOfTheirKernel) {
  const std::vector<Kernel> fused = {{"conv2d", {0}}, {"conv2d", {1, 3}}, {"elementwise", {2}}};
  EXPECT_THAT(kernel_edges(fork(), fused),
              ElementsAre(KernelEdge{0, 1}, KernelEdge{0, 2}, KernelEdge{2, 1}));
}

TEST(KernelEdges, PassThroughNodesOfNoKernel) {
  const std::vector<Kernel> some = {{"conv2d", {0}}, {"elementwise", {3}}};
  EXPECT_THAT(kernel_edges(fork(), some), ElementsAre(KernelEdge{0, 1}));
  EXPECT_TRUE(kernel_edges(fork(), {}).empty());
}

}  // namespace
}  // namespace fleetfit::cost
