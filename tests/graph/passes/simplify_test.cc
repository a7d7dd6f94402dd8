#include "fleetfit/graph/zoo.h"
#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Graph small_network() {
  NetBuilder b("net", 1);
  auto x = b.input("x", {1, 3, 8, 8});
  x = b.conv_bn(x, {.out = 4, .kernel = 3}, kRelu);
  x = b.conv_bn(x, {.out = 4, .kernel = 3, .groups = 4}, kSilu);
  b.activate(x, kTanh);
  b.output(b.linear(b.flatten(b.mean(x, {2, 3}, true)), 5), "y");
  return finished(std::move(b));
}

TEST(Simplify, BringsANetworkToItsLayers) {
  const auto before = small_network();
  auto after = before;
  ASSERT_TRUE(simplify(after));
  EXPECT_THAT(node_types(after),
              ElementsAre("Conv+Relu", "Conv+Silu", "GlobalAveragePool", "Flatten", "Gemm"));
  expect_equivalent(before, after);
}

TEST(Simplify, LeavesOutWhatItIsTold) {
  const auto before = small_network();
  auto after = before;
  ASSERT_TRUE(simplify(after, {.without = {"fold_batch_norm", "remove_dead_nodes"}}));
  EXPECT_THAT(node_types(after), Contains("BatchNormalization+Relu"));
  EXPECT_THAT(node_types(after), Contains("Tanh"));
  expect_equivalent(before, after);
  auto all = before;
  ASSERT_TRUE(simplify(all));
  EXPECT_THAT(node_types(all), Not(Contains("Tanh")));
}

TEST(Simplify, EveryPassCanBeSwitchedOff) {
  const auto before = small_network();
  for (const auto& pass : passes()) {
    auto after = before;
    ASSERT_TRUE(simplify(after, {.without = {std::string(pass.name)}})) << pass.name;
    expect_equivalent(before, after);
  }
}

TEST(Simplify, NamesThePassesWhenOneIsUnknown) {
  auto graph = small_network();
  const auto status = simplify(graph, {.without = {"fold_everything"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(status.error().message, HasSubstr("fold_everything"));
  EXPECT_THAT(status.error().message, HasSubstr("fold_batch_norm, fold_affine"));
  EXPECT_FALSE(run_pass(graph, "fold_everything"));
  const std::vector<std::string> names = {"remove_dead_nodes", "fold_everything"};
  EXPECT_FALSE(run_passes(graph, names));
  EXPECT_EQ(first_difference(graph, small_network()), std::nullopt) << "nothing was done";
}

TEST(Simplify, DoesNothingTheSecondTime) {
  auto once = small_network();
  ASSERT_TRUE(simplify(once));
  auto twice = once;
  ASSERT_TRUE(simplify(twice));
  EXPECT_EQ(first_difference(once, twice), std::nullopt);
}

TEST(Simplify, KeepsWhatSmallNetworksCompute) {
  for (const auto* name :
       {"resnet8", "mobilenet_v2_small", "shufflenet_v2_x0_5", "mobilevit_xxs"}) {
    SCOPED_TRACE(name);
    const auto before = build_zoo_network(name, {.image = 64}).value();
    auto after = before;
    ASSERT_TRUE(simplify(after));
    expect_equivalent(before, after, 1e-3);
    auto nhwc = after;
    ASSERT_TRUE(convert_layout(nhwc, Layout::nhwc));
    expect_equivalent(after, nhwc, 1e-3);
  }
}

TEST(Simplify, KeepsTheBatchOpen) {
  auto graph = small_network();
  ASSERT_TRUE(simplify(graph));
  ASSERT_TRUE(bind_dimensions(graph, {{"N", 3}}));
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{3, 5}));
}

TEST(RemoveDeadNodes, DropsChainsAndTensorsThatNobodyNeeds) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 4});
  b.input("unused", {1, 2});
  const auto y = b.activate(x, kRelu);
  b.softmax(b.mul(y, b.parameter("lost", {4}, 1)));
  b.output(y, "y");
  const auto after = after_pass(finished(std::move(b)), "remove_dead_nodes");
  EXPECT_THAT(node_types(after), ElementsAre("Relu"));
  EXPECT_EQ(after.tensors.size(), 3u);
}

TEST(RemoveDeadNodes, KeepsANodeWithOneOutputInUse) {
  NetBuilder b("net", 1);
  b.output(b.split(b.input("x", {1, 4}), {1, 3})[1], "y");
  expect_untouched(finished(std::move(b)), "remove_dead_nodes");
}

}  // namespace
}  // namespace fleetfit::graph
