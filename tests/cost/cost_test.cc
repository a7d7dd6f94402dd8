#include "fleetfit/cost/cost.h"

#include <gtest/gtest.h>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::cost {
namespace {

using namespace graph;

Graph finished(NetBuilder& net, TensorId output) {
  net.output(output, "y");
  return std::move(net).finish().value();
}

NodeCost cost_of_first(const Graph& graph) { return *count_cost(graph)->nodes[0]; }

TEST(CountCost, OfAConvolution) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 8, 10, 10});
  const auto graph =
      finished(net, net.conv(x, {.out = 16, .kernel = 3, .stride = 2, .bias = true}));
  const auto cost = cost_of_first(graph);
  EXPECT_EQ(cost.flops, 2 * 5 * 5 * 16 * (8 * 3 * 3));
  EXPECT_EQ(cost.params, 16 * 8 * 3 * 3 + 16);
  EXPECT_EQ(cost.input_bytes, 4 * 8 * 10 * 10);
  EXPECT_EQ(cost.output_bytes, 4 * 16 * 5 * 5);
  EXPECT_EQ(cost.weight_bytes, 4 * cost.params);
}

TEST(CountCost, OfGroupsCountsOnlyTheirOwnChannels) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 32, 4, 4});
  const auto graph = finished(net, net.conv(x, {.out = 32, .kernel = 3, .groups = 32}));
  EXPECT_EQ(cost_of_first(graph).flops, 2 * 4 * 4 * 32 * 9);
}

TEST(CountCost, OfATransposedConvolution) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 6, 5, 5});
  const auto graph =
      finished(net, net.conv_transpose(x, {.out = 4, .kernel = 2, .stride = 2, .pad = 0}));
  EXPECT_EQ(cost_of_first(graph).flops, 2 * 5 * 5 * 6 * 4 * 2 * 2);
}

TEST(CountCost, OfAQuestionToEachElement) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {2, 3, 4});
  const auto graph = finished(net, net.append(IsNaN{}, {x}, "IsNaN"));
  const auto cost = cost_of_first(graph);
  EXPECT_EQ(cost.flops, 0);
  EXPECT_EQ(cost.params, 0);
  EXPECT_EQ(cost.input_bytes, 4 * 2 * 3 * 4);
  EXPECT_EQ(cost.output_bytes, 2 * 3 * 4);
}

TEST(CountCost, OfDenseLayersAndMatrixProducts) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {3, 7});
  const auto dense = finished(net, net.linear(x, 5));
  EXPECT_EQ(cost_of_first(dense).flops, 2 * 3 * 7 * 5);
  EXPECT_EQ(cost_of_first(dense).params, 7 * 5 + 5);
  NetBuilder other("net", 1);
  const auto a = other.input("a", {2, 4, 6, 8});
  const auto b = other.input("b", {2, 4, 8, 3});
  const auto product = finished(other, other.matmul(a, b));
  EXPECT_EQ(cost_of_first(product).flops, 2 * 2 * 4 * 6 * 8 * 3);
  EXPECT_EQ(cost_of_first(product).params, 0);
}

TEST(CountCost, BatchNormTrainsScaleAndShiftButReadsAllFour) {
  NetBuilder net("net", 1);
  const auto graph = finished(net, net.batch_norm(net.input("x", {1, 10, 2, 2})));
  EXPECT_EQ(cost_of_first(graph).params, 20);
  EXPECT_EQ(cost_of_first(graph).weight_bytes, 4 * 40);
}

TEST(CountCost, WeightsThatAreComputedFromConstantsAreWeights) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1, 2, 4, 4}});
  const auto shape = graph.add_ints("shape", {3, 2, 1, 1});
  const auto weights = graph.add_tensor({.name = "w"});
  const auto y = graph.add_tensor({.name = "y"});
  graph.inputs = {x};
  graph.outputs = {y};
  const Window point{.kernel = {1, 1},
                     .strides = {1, 1},
                     .dilations = {1, 1},
                     .pads_begin = {0, 0},
                     .pads_end = {0, 0}};
  graph.nodes = {
      {.name = "fill", .op = ConstantOfShape{}, .inputs = {shape}, .outputs = {weights}},
      {.name = "conv", .op = Conv{.window = point}, .inputs = {x, weights}, .outputs = {y}}};
  ASSERT_TRUE(infer_shapes(graph));
  const auto cost = count_cost(graph).value();
  EXPECT_EQ(cost.nodes[0]->output_bytes, 0);
  EXPECT_EQ(cost.nodes[1]->params, 6);
  EXPECT_EQ(cost.total.weight_bytes, 24);
}

TEST(CountCost, SharedWeightsCountOnceInTheTotal) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 4});
  const auto w = net.parameter("w", {4, 4}, 1);
  const auto graph = finished(net, net.matmul(net.matmul(x, w), w));
  const auto cost = count_cost(graph).value();
  EXPECT_EQ(cost.nodes[1]->params, 16);
  EXPECT_EQ(cost.total.params, 16);
  EXPECT_EQ(cost.total.flops, 2 * 2 * 16);
}

TEST(CountCost, UnknownOperatorsArePricedByNobody) {
  Graph graph;
  const auto x = graph.add_tensor({.name = "x", .dtype = DType::f32, .shape = Shape{1, 4}});
  const auto a = graph.add_tensor({.name = "a"});
  const auto y = graph.add_tensor({.name = "y"});
  graph.inputs = {x};
  graph.outputs = {y};
  graph.nodes = {{.name = "odd", .op = Unknown{.type = "Odd"}, .inputs = {x}, .outputs = {a}},
                 {.name = "relu", .op = Activate{kRelu}, .inputs = {a}, .outputs = {y}}};
  ASSERT_TRUE(infer_shapes(graph));
  const auto cost = count_cost(graph).value();
  EXPECT_FALSE(cost.nodes[0]);
  EXPECT_FALSE(cost.nodes[1]);
}

TEST(TrainedConstants, AreWeightsAndWhatWeightsAreComputedFrom) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 4});
  const auto weight = net.parameter("weight", {3, 4}, 1);
  const auto product = net.matmul(x, net.transpose(weight, {1, 0}));
  const auto shift = net.parameter("shift", {3}, 1);
  const auto graph = finished(net, net.scale(net.add(product, shift), 0.5));
  EXPECT_EQ(trained_constants(graph), (std::vector<TensorId>{weight, shift}));
}

TEST(TrainedConstants, AreNotTheStatisticsOfBatchNorm) {
  NetBuilder net("net", 1);
  const auto graph = finished(net, net.batch_norm(net.input("x", {1, 4, 2, 2})));
  const auto& norm = graph.nodes[0].inputs;
  EXPECT_EQ(trained_constants(graph), (std::vector<TensorId>{norm[1], norm[2]}));
}

TEST(CountCost, RefusesNumbersBeyond64Bits) {
  Graph graph;
  const std::int64_t many = std::int64_t{1} << 20;
  const auto a = graph.add_tensor({.name = "a", .dtype = DType::f32, .shape = Shape{many, many}});
  const auto b = graph.add_tensor({.name = "b", .dtype = DType::f32, .shape = Shape{many, many}});
  const auto y = graph.add_tensor({.name = "y", .dtype = DType::f32, .shape = Shape{many, many}});
  graph.inputs = {a, b};
  graph.outputs = {y};
  graph.nodes = {{.name = "product", .op = MatMul{}, .inputs = {a, b}, .outputs = {y}}};
  EXPECT_EQ(count_cost(graph)->total.flops, std::int64_t{1} << 61);
  graph.tensor(a).shape = graph.tensor(b).shape = graph.tensor(y).shape =
      Shape{16, many / 4, many / 4};
  graph.tensor(a).shape->back() = std::int64_t{1} << 40;
  EXPECT_FALSE(count_cost(graph));
}

}  // namespace
}  // namespace fleetfit::cost
