#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::cost {
namespace {

using namespace graph;
using testing::ElementsAre;
using testing::IsEmpty;

Graph finished(NetBuilder& net, TensorId output) {
  net.output(output, "y");
  return std::move(net).finish().value();
}

/// conv, batch norm, ReLU, conv, batch norm, addition, ReLU.
Graph residual_block() {
  NetBuilder net("net", 1);
  const auto x = net.conv_bn(net.input("x", {1, 8, 8, 8}), {.out = 8}, kRelu);
  return finished(net, net.activate(net.add(net.conv_bn(x, {.out = 8, .kernel = 3}), x), kRelu));
}

double total_ms(const MatchedProfile& matched) {
  double sum = 0;
  for (const auto& kernel : matched.kernels) sum += kernel.ms;
  for (const auto& entry : matched.unmatched) sum += entry.ms;
  return sum;
}

TEST(MatchProfile, FindsTheNodesBehindJoinedNames) {
  const std::vector<ProfileEntry> profile{{"Conv_0", "Conv", "k", 1},
                                          {"Conv_1+Add_0", "Conv", "k", 2}};
  const auto matched = match_profile(residual_block(), profile);
  ASSERT_EQ(matched.kernels.size(), 2U);
  EXPECT_EQ(matched.kernels[0].kernel, (Kernel{"conv2d", {0, 1, 2}}));
  EXPECT_EQ(matched.kernels[1].kernel, (Kernel{"conv2d", {3, 4, 5, 6}}));
  EXPECT_THAT(matched.unmatched, IsEmpty());
}

TEST(MatchProfile, FindsTheConvolutionBehindANameOfWhatWasFusedIntoIt) {
  const std::vector<ProfileEntry> profile{{"Relu_0", "Conv", "k", 1},
                                          {"BatchNorm_1", "FusedConv", "k", 2}};
  const auto matched = match_profile(residual_block(), profile);
  ASSERT_EQ(matched.kernels.size(), 2U);
  EXPECT_EQ(matched.kernels[0].kernel, (Kernel{"conv2d", {0, 1, 2}}));
  EXPECT_EQ(matched.kernels[1].kernel, (Kernel{"conv2d", {3, 4, 5, 6}}));
}

TEST(MatchProfile, ReadsNamesWithAdditions) {
  const std::vector<ProfileEntry> profile{{"Conv_0_token_19", "QLinearConv", "k", 1},
                                          {"Conv_1_nchwc", "Conv", "k", 2},
                                          {"fused Add_0", "Add", "k", 3}};
  const auto matched = match_profile(residual_block(), profile);
  ASSERT_EQ(matched.kernels.size(), 3U);
  EXPECT_THAT(matched.kernels[1].kernel.nodes, ElementsAre(3, 4));
  EXPECT_THAT(matched.kernels[2].kernel.nodes, ElementsAre(5, 6));
}

TEST(MatchProfile, ReadsNamesOfResultsAndPlacesInTheFile) {
  auto graph = residual_block();
  for (auto& node : graph.nodes) node.name = "no_" + node.name;
  graph.tensor(graph.nodes[2].outputs[0]).name = "features";
  const std::vector<ProfileEntry> profile{{"features", "Conv", "k", 1}, {"Conv_3", "Conv", "k", 2}};
  const auto matched = match_profile(graph, profile);
  ASSERT_EQ(matched.kernels.size(), 2U);
  EXPECT_THAT(matched.kernels[0].kernel.nodes, ElementsAre(0, 1, 2));
  EXPECT_THAT(matched.kernels[1].kernel.nodes, ElementsAre(3, 4, 5, 6));
}

TEST(MatchProfile, CountsHelpersToTheKernelAfterThemAndLosesNoTime) {
  const std::vector<ProfileEntry> profile{{"x_nhwc_transpose", "Transpose", "k", 0.5},
                                          {"Conv_0", "Conv", "k", 1},
                                          {"ReorderInput_7", "ReorderInput", "k", 0.25},
                                          {"Conv_1+Add_0", "Conv", "k", 2},
                                          {"ReorderOutput_1", "ReorderOutput", "k", 0.125}};
  const auto matched = match_profile(residual_block(), profile);
  ASSERT_EQ(matched.kernels.size(), 2U);
  EXPECT_DOUBLE_EQ(matched.kernels[0].ms, 1.5);
  EXPECT_DOUBLE_EQ(matched.kernels[0].helper_ms, 0.5);
  EXPECT_DOUBLE_EQ(matched.kernels[1].ms, 2.375);
  EXPECT_DOUBLE_EQ(matched.kernels[1].helper_ms, 0.375);
}

TEST(MatchProfile, ListsWhatBelongsToNoNode) {
  const std::vector<ProfileEntry> profile{
      {"warm_up", "Wobble", "k", 4}, {"Conv_0", "Conv", "k", 1}, {"Conv_1+Add_0", "Conv", "k", 2}};
  const auto matched = match_profile(residual_block(), profile);
  ASSERT_EQ(matched.unmatched.size(), 1U);
  EXPECT_EQ(matched.unmatched[0].name, "warm_up");
  EXPECT_DOUBLE_EQ(total_ms(matched), 7);
}

TEST(MatchProfile, GivesPiecesUnderOtherNamesToTheOperatorThatIsMissing) {
  NetBuilder net("net", 1);
  const auto x = net.max_pool(net.input("x", {1, 8, 8, 8}), {});
  const auto graph =
      finished(net, net.average_pool(net.node(Activate{kHardSwish}, {x}, "HardSwish"), {}));
  const std::vector<ProfileEntry> profile{{"MaxPool_0", "MaxPool", "k", 1},
                                          {"HardSigmoid_463", "HardSigmoid", "k", 2},
                                          {"Mul_464", "Mul", "k", 4},
                                          {"AveragePool_0", "AveragePool", "k", 8}};
  const auto matched = match_profile(graph, profile);
  ASSERT_EQ(matched.kernels.size(), 3U);
  EXPECT_THAT(matched.kernels[1].kernel.nodes, ElementsAre(1));
  EXPECT_DOUBLE_EQ(matched.kernels[1].ms, 6);
}

TEST(MatchProfile, LeavesViewsAndJoinsInPlaceOut) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 8, 8, 8});
  const auto joined = net.concat({net.conv(x, {.out = 8}), net.conv(x, {.out = 8, .kernel = 3})});
  const auto graph = finished(net, net.linear(net.flatten(joined), 4));
  const std::vector<ProfileEntry> profile{
      {"Conv_0", "Conv", "k", 1}, {"Conv_1", "Conv", "k", 1}, {"Gemm_0", "Gemm", "k", 1}};
  const auto matched = match_profile(graph, profile);
  ASSERT_EQ(matched.kernels.size(), 3U);
  for (const auto& kernel : matched.kernels) EXPECT_EQ(kernel.kernel.nodes.size(), 1U);
}

TEST(MatchProfile, OfNothingIsNothing) {
  EXPECT_THAT(match_profile(residual_block(), {}).kernels, IsEmpty());
}

TEST(CompareKernels, TellsWhatRanOtherwise) {
  const std::vector<Kernel> deduced{{"conv2d", {0, 1}}, {"conv2d", {2, 3}}, {"concat", {4}}};
  const std::vector<ProfiledKernel> ran{{.kernel = {"conv2d", {1, 0}}},
                                        {.kernel = {"conv2d", {2}}},
                                        {.kernel = {"elementwise", {3}}},
                                        {.kernel = {"softmax", {5}}}};
  const auto comparison = compare_kernels(deduced, ran);
  EXPECT_EQ(comparison.alike, 1);
  EXPECT_THAT(comparison.ran_alike, ElementsAre(0U));
  ASSERT_EQ(comparison.differences.size(), 3U);
  EXPECT_THAT(comparison.differences[0].deduced, ElementsAre(2, 3));
  EXPECT_THAT(comparison.differences[0].ran, ElementsAre(ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(comparison.differences[1].deduced, ElementsAre(4));
  EXPECT_THAT(comparison.differences[1].ran, IsEmpty());
  EXPECT_THAT(comparison.differences[2].deduced, IsEmpty());
  EXPECT_THAT(comparison.differences[2].ran, ElementsAre(ElementsAre(5)));
}

TEST(AssignTimes, GivesEachDeducedKernelWhatRanForItAndKeepsTheRest) {
  const std::vector<Kernel> deduced{{"conv2d", {0, 1}}, {"conv2d", {2, 3}}, {"concat", {4}}};
  const MatchedProfile ran{.kernels = {{.kernel = {"conv2d", {0, 1}}, .ms = 1},
                                       {.kernel = {"conv2d", {2}}, .ms = 2},
                                       {.kernel = {"elementwise", {3}}, .ms = 4},
                                       {.kernel = {"softmax", {5}}, .ms = 8}},
                           .unmatched = {{.name = "warm_up", .ms = 16}}};
  const auto times = assign_times(deduced, ran);
  EXPECT_THAT(times.ms, ElementsAre(1, 6, 0));
  EXPECT_EQ(times.rest_ms, 24);
}

}  // namespace
}  // namespace fleetfit::cost
