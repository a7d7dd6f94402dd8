// Graphs at the edges of what is allowed: each runs as the interpreter runs it.
#include <gtest/gtest.h>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/shape_inference.h"
#include "tests/engine/compare.h"

namespace fleetfit::engine {
namespace {

using graph::DType;
using graph::Graph;
using graph::NetBuilder;
using graph::Shape;
using graph::TensorId;

TensorId add_input(Graph& graph, std::string name, Shape shape, DType dtype = DType::f32) {
  const TensorId id =
      graph.add_tensor({.name = std::move(name), .dtype = dtype, .shape = std::move(shape)});
  graph.inputs.push_back(id);
  return id;
}

TensorId add_node(Graph& graph, graph::Operator op, std::vector<TensorId> inputs,
                  const std::string& name) {
  const TensorId id = graph.add_tensor({.name = name});
  graph.nodes.push_back(
      {.name = name, .op = std::move(op), .inputs = std::move(inputs), .outputs = {id}});
  return id;
}

TensorId add_relu(Graph& graph, TensorId x, const std::string& name) {
  return add_node(graph, graph::Activate{graph::kRelu}, {x}, name);
}

TensorId add_sum(Graph& graph, TensorId a, TensorId b, const std::string& name) {
  return add_node(graph, graph::Elementwise{graph::ElementwiseKind::add}, {a, b}, name);
}

TensorId add_floats(Graph& graph, std::string name, const std::vector<float>& values) {
  return graph.add_tensor({.name = std::move(name),
                           .dtype = DType::f32,
                           .shape = Shape{std::ssize(values)},
                           .data = graph::TensorData::copy(values)});
}

/// Shapes and types filled in, as an importer gives graphs.
Graph inferred(Graph graph) {
  const auto status = infer_shapes(graph);
  EXPECT_TRUE(status) << status.error().message;
  return graph;
}

TEST(OddGraphs, AnOutputMayBeAnInput) {
  Graph graph;
  graph.outputs = {add_input(graph, "x", {2, 3})};
  expect_as_evaluated(graph);
}

TEST(OddGraphs, AnInputMayBeAnOutputBesideOthers) {
  Graph graph;
  const TensorId x = add_input(graph, "x", {2, 3});
  graph.outputs = {add_relu(graph, x, "y"), x};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, AnInputThatIsAnOutputUnderAnotherNameIsNotOverwritten) {
  Graph graph;
  const TensorId x = add_input(graph, "x", {1, 16, 4, 4});
  const TensorId same = add_node(graph, graph::Identity{}, {x}, "same");
  graph.outputs = {add_relu(graph, same, "y"), same};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, OneTensorMayBeSeveralOutputs) {
  Graph graph;
  const TensorId y = add_relu(graph, add_input(graph, "x", {5}), "y");
  graph.outputs = {y, y, add_relu(graph, y, "z"), y};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, ConstantsAloneGiveConstants) {
  Graph graph;
  const TensorId a = add_floats(graph, "a", {1, -2, 3});
  graph.outputs = {add_relu(graph, a, "y"), a};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, ConstantsStandBesideComputedOutputs) {
  Graph graph;
  const TensorId a = add_floats(graph, "a", {1, -2, 3});
  graph.outputs = {add_sum(graph, add_input(graph, "x", {3}), a, "y"), a,
                   add_relu(graph, a, "folded")};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, WhatNobodyReadsDoesNoHarm) {
  Graph graph;
  const TensorId x = add_input(graph, "x", {1, 4, 6, 6});
  add_input(graph, "unused", {7});
  add_relu(graph, x, "unread");
  graph.outputs = {add_node(graph, graph::Unary{graph::UnaryKind::abs}, {x}, "y")};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, NamesNeedNotDiffer) {
  Graph graph;
  TensorId x = add_input(graph, "t", {4, 4});
  x = add_sum(graph, x, add_input(graph, "t", {4, 4}), "t");
  graph.outputs = {add_relu(graph, x, "t"), x};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, NamesMayBeEmpty) {
  Graph graph;
  graph.outputs = {add_relu(graph, add_input(graph, "", {3}), "")};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, InfiniteWeightsAreNumbers) {
  Graph graph;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const TensorId bound = add_floats(graph, "bound", {kInfinity, -kInfinity, 0});
  graph.outputs = {add_node(graph, graph::Elementwise{graph::ElementwiseKind::min},
                            {add_input(graph, "x", {2, 3}), bound}, "y")};
  const auto made = inferred(graph);
  const auto inputs = graph::random_inputs(made, 3);
  const auto results = run_on_engine(made, inputs, {.choosing = Choosing::fixed});
  ASSERT_TRUE(results) << results.error().message;
  const auto x = inputs[0].data.as<float>();
  const auto y = (*results)[0].data.as<float>();
  EXPECT_EQ(y[0], x[0]);
  EXPECT_EQ(y[1], -kInfinity);
  EXPECT_EQ(y[5], std::min(x[5], 0.0F));
}

TEST(OddGraphs, AGraphWithoutOutputsRuns) {
  Graph graph;
  add_relu(graph, add_input(graph, "x", {3}), "y");
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, TheSameTensorMayBeBothOperands) {
  Graph graph;
  const TensorId x = add_input(graph, "x", {1, 16, 5, 5});
  graph.outputs = {add_sum(graph, x, x, "twice")};
  expect_as_evaluated(inferred(graph));
}

TEST(OddGraphs, AConvolutionAddedToItselfIsAddedOnce) {
  NetBuilder net("net", 1);
  const TensorId x = net.input("x", {1, 16, 5, 5});
  const TensorId y = net.conv(x, {.out = 16, .kernel = 3});
  net.output(net.add(y, y), "twice");
  expect_as_evaluated(std::move(net).finish().value());
}

TEST(OddGraphs, ResidualsThatAreReadAgainAreKept) {
  NetBuilder net("net", 1);
  const TensorId x = net.input("x", {1, 16, 5, 5});
  const TensorId a = net.conv_bn(x, {.out = 16, .kernel = 3}, graph::kRelu);
  const TensorId b = net.add(net.conv(a, {.out = 16, .kernel = 1}), a);
  const TensorId c = net.add(net.conv(b, {.out = 16, .kernel = 3}), a);  // `a` once more
  net.output(net.add(c, b), "y");
  net.output(c, "c");
  expect_as_evaluated(std::move(net).finish().value());
}

TEST(OddGraphs, ResidualsThatAreInputsAreKept) {
  NetBuilder net("net", 1);
  const TensorId x = net.input("x", {1, 16, 5, 5});
  net.output(net.add(net.conv(x, {.out = 16, .kernel = 3}), x), "y");
  expect_as_evaluated(std::move(net).finish().value());
}

/// A small network with everything that layouts and batches can break.
Graph mixed_network(std::int64_t batch, std::int64_t height, std::int64_t width) {
  NetBuilder net("mixed", 3);
  TensorId x = net.input("x", {batch, 3, height, width});
  x = net.conv_bn(x, {.out = 24, .kernel = 3, .stride = 2}, graph::kRelu6);
  const TensorId left = net.conv_bn(x, {.out = 24, .kernel = 3, .groups = 24}, graph::kHardSwish);
  const TensorId right = net.conv_bn(x, {.out = 32, .kernel = 1}, graph::kSilu);
  x = net.concat({left, right});
  x = net.max_pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  x = net.conv_bn(x, {.out = 16, .kernel = 5, .pad = 2}, graph::kRelu);
  x = net.add(net.conv_bn(x, {.out = 16, .kernel = 3}), x);
  x = net.channel_shuffle(x, 2);
  x = net.average_pool(x, {.kernel = 2, .stride = 1});
  net.output(net.linear(net.flatten(net.global_average_pool(x)), 7), "y");
  return std::move(net).finish().value();
}

class BatchesAndSizes : public testing::TestWithParam<Shape> {};

TEST_P(BatchesAndSizes, GiveWhatTheInterpreterGives) {
  const auto& size = GetParam();
  expect_as_evaluated(mixed_network(size[0], size[1], size[2]));
}

INSTANTIATE_TEST_SUITE_P(All, BatchesAndSizes,
                         testing::Values(Shape{1, 32, 32}, Shape{2, 32, 32}, Shape{5, 32, 32},
                                         Shape{1, 17, 31}, Shape{2, 9, 13}, Shape{3, 8, 63}),
                         [](const auto& test) { return graph::to_string(test.param); });

/// One convolution over an input of any number of spatial dimensions.
struct ConvCase {
  std::string name;
  Shape input;
  Shape weights;
  graph::Conv conv;
};

graph::Conv conv(graph::Ints kernel, graph::Ints strides, graph::Ints dilations, graph::Ints begin,
                 graph::Ints end, std::int64_t groups = 1) {
  return {.window = {.kernel = std::move(kernel),
                     .strides = std::move(strides),
                     .dilations = std::move(dilations),
                     .pads_begin = std::move(begin),
                     .pads_end = std::move(end)},
          .groups = groups};
}

class Convolutions : public testing::TestWithParam<ConvCase> {};

TEST_P(Convolutions, GiveWhatTheInterpreterGives) {
  const ConvCase& test = GetParam();
  NetBuilder net("conv", 5);
  const TensorId x = net.input("x", test.input);
  const TensorId weights = net.parameter("weights", test.weights, 0.3);
  const TensorId bias = net.parameter("bias", {test.weights[0]}, 0.3);
  const TensorId y = net.node(test.conv, {x, weights, bias});
  net.output(net.activate(y, graph::kRelu), "y");
  net.output(net.node(test.conv, {x, weights}), "without_bias");
  auto graph = std::move(net).finish();
  ASSERT_TRUE(graph) << graph.error().message;
  expect_as_evaluated(*graph);
}

INSTANTIATE_TEST_SUITE_P(
    All, Convolutions,
    testing::Values(ConvCase{"one_dimension", {2, 6, 21}, {8, 6, 5}, conv({5}, {2}, {1}, {2}, {1})},
                    ConvCase{"one_dimension_depthwise",
                             {1, 8, 21},
                             {8, 1, 3},
                             conv({3}, {1}, {2}, {2}, {2}, 8)},
                    ConvCase{"three_dimensions",
                             {1, 3, 7, 6, 5},
                             {4, 3, 3, 2, 3},
                             conv({3, 2, 3}, {1, 2, 1}, {1, 1, 1}, {1, 0, 1}, {1, 1, 1})},
                    ConvCase{"three_dimensions_grouped",
                             {2, 4, 5, 5, 5},
                             {8, 2, 3, 3, 3},
                             conv({3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 2)},
                    ConvCase{"dilated",
                             {1, 16, 15, 15},
                             {32, 16, 3, 3},
                             conv({3, 3}, {1, 1}, {3, 2}, {3, 2}, {3, 2})},
                    ConvCase{"padded_on_one_side",
                             {2, 5, 11, 12},
                             {7, 5, 3, 4},
                             conv({3, 4}, {2, 1}, {1, 1}, {0, 3}, {2, 0})},
                    ConvCase{"three_groups",
                             {1, 12, 9, 9},
                             {18, 4, 3, 3},
                             conv({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3)},
                    ConvCase{"groups_of_whole_blocks",
                             {1, 32, 9, 9},
                             {64, 16, 3, 3},
                             conv({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 2)},
                    ConvCase{"depthwise_with_two_per_channel",
                             {1, 6, 9, 9},
                             {12, 1, 3, 3},
                             conv({3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 6)},
                    ConvCase{"depthwise_dilated",
                             {1, 20, 13, 9},
                             {20, 1, 3, 3},
                             conv({3, 3}, {1, 1}, {2, 3}, {2, 3}, {2, 3}, 20)},
                    ConvCase{"one_pixel",
                             {1, 33, 1, 1},
                             {17, 33, 1, 1},
                             conv({1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0})},
                    ConvCase{"kernel_as_large_as_the_image",
                             {3, 4, 6, 7},
                             {5, 4, 6, 7},
                             conv({6, 7}, {1, 1}, {1, 1}, {0, 0}, {0, 0})},
                    ConvCase{"more_padding_than_kernel",
                             {1, 4, 5, 5},
                             {4, 4, 2, 2},
                             conv({2, 2}, {2, 2}, {1, 1}, {3, 3}, {3, 3})},
                    ConvCase{"strides_that_skip_pixels",
                             {1, 16, 12, 12},
                             {16, 16, 1, 1},
                             conv({1, 1}, {3, 2}, {1, 1}, {0, 0}, {0, 0})}),
    [](const auto& test) { return test.param.name; });

TEST(OddGraphs, TransposedConvolutions) {
  NetBuilder net("deconv", 5);
  const TensorId x = net.input("x", {2, 8, 5, 7});
  net.output(net.conv_transpose(x, {.out = 6, .kernel = 4, .stride = 2, .pad = 1, .bias = true}),
             "plain");
  const TensorId weights = net.parameter("weights", {8, 3, 3, 3}, 0.3);
  graph::ConvTranspose op{.window = conv({3, 3}, {2, 3}, {1, 1}, {1, 0}, {0, 2}).window,
                          .groups = 2,
                          .output_padding = {1, 0}};
  net.output(net.node(op, {x, weights}), "grouped");
  op.window.dilations = {2, 1};
  net.output(net.activate(net.node(op, {x, weights}), graph::kRelu), "dilated");
  auto graph = std::move(net).finish();
  ASSERT_TRUE(graph) << graph.error().message;
  expect_as_evaluated(*graph);
}

TEST(OddGraphs, WeightsThatAreComputed) {
  NetBuilder net("dynamic", 5);
  const TensorId x = net.input("x", {1, 8, 6, 6});
  const TensorId weights = net.input("weights", {8, 8, 3, 3});
  const TensorId y = net.node(conv({3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}), {x, weights});
  net.output(net.add(y, x), "y");
  net.output(net.matmul(x, net.input("m", {6, 5})), "product");
  expect_as_evaluated(std::move(net).finish().value());
}

TEST(OddGraphs, HalfFloatsGiveWhatTheInterpreterGives) {
  for (const auto dtype : {DType::f16, DType::bf16, DType::f64}) {
    Graph graph;
    const TensorId x = add_input(graph, "x", {1, 2, 5, 5}, dtype);
    const TensorId sum = add_sum(graph, x, add_input(graph, "z", {2, 1, 1}, dtype), "sum");
    graph.outputs = {add_relu(graph, sum, "y"),
                     add_node(graph, graph::Cast{DType::f32}, {sum}, "floats")};
    expect_as_evaluated(inferred(graph));
  }
}

TEST(OddGraphs, WholeNumbersGiveWhatTheInterpreterGives) {
  for (const auto dtype : {DType::i64, DType::i32, DType::u8, DType::i8}) {
    Graph graph;
    const TensorId x = add_input(graph, "x", {3, 4}, dtype);
    const TensorId sum = add_sum(graph, x, x, "sum");
    graph.outputs = {sum, add_node(graph, graph::Transpose{{1, 0}}, {sum}, "turned"),
                     add_node(graph, graph::Concat{1}, {sum, x}, "joined"),
                     add_node(graph, graph::Cast{DType::f32}, {sum}, "floats")};
    expect_as_evaluated(inferred(graph));
  }
}

}  // namespace
}  // namespace fleetfit::engine
