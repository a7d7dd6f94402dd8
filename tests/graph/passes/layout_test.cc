#include <algorithm>

#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;

Window window(std::int64_t kernel, std::size_t dimensions = 2) {
  return {.kernel = Ints(dimensions, kernel),
          .strides = Ints(dimensions, 1),
          .dilations = Ints(dimensions, 1),
          .pads_begin = Ints(dimensions, kernel / 2),
          .pads_end = Ints(dimensions, kernel / 2)};
}

std::int64_t transposes(const Graph& graph) {
  const auto types = node_types(graph);
  return std::count(types.begin(), types.end(), "Transpose");
}

// To NHWC and back; the way back must remove what the way there put in.
Graph there_and_back(const Graph& graph) {
  const auto nhwc = after_pass(graph, "layout_nhwc");
  const auto nchw = after_pass(nhwc, "layout_nchw");
  EXPECT_EQ(transposes(nchw), transposes(graph));
  expect_equivalent(graph, nchw);
  return nhwc;
}

TEST(Layout, KeepsTransposesAtTheBorderOnly) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {2, 3, 9, 7}), {.out = 8, .kernel = 3, .stride = 2, .bias = true});
  const auto skip = x;
  x = b.batch_norm(b.conv(x, {.out = 8, .kernel = 3, .groups = 4}));
  x = b.activate(b.add(x, skip), kRelu);
  x = b.max_pool(x, {.kernel = 3, .stride = 1, .pad = 1});
  b.output(b.append(PRelu{}, {x, b.parameter("slope", {8, 1, 1}, 0.05, 0.25)}, "PRelu"), "y");
  const auto nhwc = there_and_back(finished(std::move(b)));
  EXPECT_THAT(node_types(nhwc), ElementsAre("Transpose", "Conv", "Conv", "BatchNormalization",
                                            "Add", "Relu", "MaxPool", "PRelu", "Transpose"));
}

TEST(Layout, GoesThroughOperatorsWithAxes) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {2, 3, 8, 6}), {.out = 8});
  const auto parts = b.split(x, {3, 5});
  x = b.concat({parts[1], b.activate(parts[0], kSigmoid)});
  x = b.pad(x, 1, 2, 3, 0);
  x = b.slice(x, 2, 1, 9);
  x = b.slice(x, 1, 2, 6);
  x = b.resize(x, 2.0, ResizeMode::linear);
  x = b.mul(x, b.mean(x, {2, 3}, true));
  x = b.mul(x, b.node(Reduce{.kind = ReduceKind::max, .axes = {1}}, {x}));
  x = b.mul(x, b.parameter("per channel", {4, 1, 1}, 1));
  x = b.mul(x, b.parameter("per column", {16}, 1));
  x = b.softmax(x, 1);
  b.output(b.conv(x, {.out = 2}), "y");
  EXPECT_EQ(transposes(there_and_back(finished(std::move(b)))), 2);
}

TEST(Layout, MovesEveryImageOperator) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {1, 8, 4, 6});
  x = b.conv_transpose(x, {.out = 8, .kernel = 2, .stride = 2, .pad = 0, .bias = true});
  x = b.lrn(x, {.size = 3, .alpha = 0.5F});
  x = b.node(ChannelShuffle{4}, {x});
  x = b.node(SpaceToDepth{2}, {x});
  x = b.node(DepthToSpace{2}, {x});
  x = b.node(DepthToSpace{2, true}, {x});
  x = b.average_pool(x, {.kernel = 3, .stride = 2, .pad = 1, .count_include_pad = false});
  x = b.mul(x, b.global_average_pool(x));
  b.output(x, "y");
  const auto nhwc = there_and_back(finished(std::move(b)));
  EXPECT_EQ(transposes(nhwc), 2);
}

TEST(Layout, MovesImagesOfOneAndThreeDimensions) {
  for (const std::size_t dimensions : {1, 3}) {
    HandMade h;
    Shape shape{2, 4};
    shape.insert(shape.end(), dimensions, 6);
    Shape kernel{6, 2};
    kernel.insert(kernel.end(), dimensions, 3);
    Shape up_kernel{6, 2};
    up_kernel.insert(up_kernel.end(), dimensions, 3);
    const auto x = h.input("x", shape);
    const auto y = h.node(Conv{window(3, dimensions), 2}, {x, h.floats(kernel, 1)});
    const auto z = h.node(
        ConvTranspose{
            .window = window(3, dimensions), .groups = 3, .output_padding = Ints(dimensions, 0)},
        {y, h.floats(up_kernel, 2), h.floats({6}, 3)});
    h.output(h.node(GlobalPool{PoolKind::max}, {z}), "y");
    EXPECT_EQ(transposes(there_and_back(h.finish())), 2);
  }
}

TEST(Layout, ReadsPooledFeaturesWithoutATranspose) {
  NetBuilder b("net", 1);
  auto x = b.global_average_pool(b.conv(b.input("x", {2, 3, 8, 6}), {.out = 8}));
  b.output(b.linear(b.flatten(x), 5), "y");
  const auto nhwc = after_pass(finished(std::move(b)), "layout_nhwc");
  EXPECT_THAT(node_types(nhwc),
              ElementsAre("Transpose", "Conv", "GlobalAveragePool", "Reshape", "Gemm"));
}

TEST(Layout, ReducesToFeaturesWithoutATranspose) {
  NetBuilder b("net", 1);
  const auto x = b.conv(b.input("x", {2, 3, 8, 6}), {.out = 8});
  b.output(b.linear(b.mean(x, {2, 3}), 5), "y");
  const auto nhwc = after_pass(finished(std::move(b)), "layout_nhwc");
  EXPECT_EQ(transposes(nhwc), 1);
}

TEST(Layout, TakesAFollowingTransposeIn) {
  NetBuilder b("net", 1);
  const auto x = b.conv(b.input("x", {2, 3, 8, 6}), {.out = 4});
  b.output(b.reshape(b.transpose(x, {0, 2, 3, 1}), {2, 96, 2}), "boxes");
  b.output(b.transpose(x, {0, 2, 3, 1}), "as it is");
  b.output(b.transpose(x, {0, 3, 2, 1}), "another");
  const auto nhwc = after_pass(finished(std::move(b)), "layout_nhwc");
  EXPECT_EQ(transposes(nhwc), 2);
}

TEST(Layout, WritesBatchOperatorsOutInNchw) {
  HandMade h;
  const auto x = h.input("x", {1, 5, 6, 3});
  const auto pads = h.graph.add_ints("pads", {1, 2, 0, 0});
  h.graph.tensor(pads).shape = Shape{2, 2};
  const auto crops = h.graph.add_ints("crops", {1, 2, 0, 0});
  h.graph.tensor(crops).shape = Shape{2, 2};
  const auto block = h.ints({2, 3});
  const auto y = h.node(SpaceToBatch{}, {x, block, pads});
  const auto z = h.node(Conv{window(3), 3, Layout::nhwc}, {y, h.floats({3, 3, 3, 1}, 1)});
  h.output(h.node(BatchToSpace{}, {z, block, crops}), "y");
  const auto nchw = after_pass(h.finish(), "layout_nchw");
  EXPECT_THAT(node_types(nchw),
              ElementsAre("Transpose", "Pad", "Reshape", "Transpose", "Reshape", "Conv", "Reshape",
                          "Transpose", "Reshape", "Slice", "Transpose"));
}

TEST(Layout, MovesTheAxisOfScalesWithTheWeights) {
  HandMade h;
  const auto x = h.input("x", {1, 2, 4, 4});
  const auto weights =
      h.graph.add_tensor({.name = "w",
                          .dtype = DType::i8,
                          .shape = Shape{2, 3, 1, 1},
                          .quantization = Quantization{{0.1F, 0.2F, 0.3F}, {0, 0, 0}, 1},
                          .data = TensorData::copy(std::vector<std::int8_t>{1, 2, 3, 4, 5, 6})});
  h.output(h.node(ConvTranspose{.window = window(1), .output_padding = {0, 0}}, {x, weights}), "y");
  const auto nhwc = after_pass(h.finish(), "layout_nhwc");
  const auto& conv = nhwc.nodes[1];
  EXPECT_EQ(nhwc.tensor(conv.inputs[1]).quantization->axis, 0);
  EXPECT_EQ(nhwc.tensor(conv.inputs[1]).shape, (Shape{3, 1, 1, 2}));
}

TEST(Layout, MovesWeightsThatAreComputed) {
  HandMade h;
  const auto x = h.input("x", {1, 4, 5, 5});
  const auto weights = h.node(Activate{kRelu}, {h.input("w", {4, 3, 3, 3})});
  h.output(h.node(ConvTranspose{.window = window(3), .groups = 2, .output_padding = {0, 0}},
                  {x, weights}),
           "y");
  there_and_back(h.finish());
}

TEST(Layout, LeavesAGraphThatHasItAlready) {
  NetBuilder b("net", 1);
  b.output(b.conv(b.input("x", {2, 3, 8, 6}), {.out = 8}), "y");
  expect_untouched(finished(std::move(b)), "layout_nchw");
}

TEST(Layout, ConvertsByName) {
  NetBuilder b("net", 1);
  b.output(b.conv(b.input("x", {2, 3, 8, 6}), {.out = 8}), "y");
  auto graph = finished(std::move(b));
  ASSERT_TRUE(convert_layout(graph, Layout::nhwc));
  EXPECT_EQ(std::get<Conv>(graph.nodes[1].op).layout, Layout::nhwc);
}

}  // namespace
}  // namespace fleetfit::graph
