#include "fleetfit/graph/shrink.h"

#include <gtest/gtest.h>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/net_builder.h"
#include "set_weights.h"

namespace fleetfit::elastic {
namespace {

using graph::can_shrink;
using graph::kept_channels;
using graph::NetBuilder;
using graph::Shape;
using graph::shrunk;

Shape weights_shape(const graph::Graph& graph, std::size_t node) {
  return *graph.tensor(graph.nodes[node].inputs[1]).shape;
}

float output_for(const graph::Graph& graph, float x) {
  const std::vector<float> pixel{x};
  const std::vector<graph::Value> inputs{
      {.shape = {1, 1, 1, 1}, .data = graph::TensorData::copy(pixel), .quantization = {}}};
  return graph::evaluate(graph, inputs).value()[0].data.as<float>()[0];
}

/// One pixel to four channels, their positive part, and back.
graph::Graph two_layers() {
  NetBuilder net("two layers", 1);
  const auto x = net.input("x", {1, 1, 1, 1});
  const auto inner = net.activate(net.conv(x, {.out = 4}), graph::kRelu);
  net.output(net.conv(inner, {.out = 1}), "y");
  auto graph = std::move(net).finish().value();
  set_operand(graph, 0, 1, {1, -3, 0.5, 2});
  set_operand(graph, 2, 1, {1, 1, 4, -0.25});
  return graph;
}

TEST(Shrink, KeepsTheMostImportantChannelsAndTheSlicesThatReadThem) {
  // |making| * |reading| is 1, 3, 2 and 0.5.
  const auto half = shrunk(two_layers(), 0.5).value();
  EXPECT_EQ(operand(half, 0, 1), (std::vector<float>{-3, 0.5}));
  EXPECT_EQ(operand(half, 2, 1), (std::vector<float>{1, 4}));
  // 1*relu(-6) + 4*relu(1), and 1*relu(3) + 4*relu(-0.5); the whole block gives 2 + 0 + 4 - 1.
  EXPECT_EQ(output_for(half, 2), 4);
  EXPECT_EQ(output_for(half, -1), 3);
  EXPECT_EQ(output_for(two_layers(), 2), 5);
  EXPECT_EQ(operand(shrunk(two_layers(), 0.25).value(), 0, 1), (std::vector<float>{-3}));
}

TEST(Shrink, CountsHowBatchNormScalesAChannel) {
  NetBuilder net("normed", 1);
  const auto x = net.input("x", {1, 1, 1, 1});
  const auto inner = net.conv_bn(x, {.out = 4}, graph::kRelu);
  net.output(net.conv(inner, {.out = 1}), "y");
  auto graph = std::move(net).finish().value();
  set_operand(graph, 0, 1, {1, 1, 1, 1});
  set_operand(graph, 1, 1, {0.1F, 5, 10, 3});   // scales
  set_operand(graph, 1, 2, {10, 20, 30, 40});   // shifts
  set_operand(graph, 1, 4, {1, 1, 10'000, 1});  // variances: the third channel is scaled by 0.1
  set_operand(graph, 3, 1, {1, 1, 1, 1});
  const auto half = shrunk(graph, 0.5).value();
  EXPECT_EQ(operand(half, 1, 1), (std::vector<float>{5, 3}));
  EXPECT_EQ(operand(half, 1, 2), (std::vector<float>{20, 40}));
  EXPECT_EQ(operand(half, 1, 4), (std::vector<float>{1, 1}));
}

TEST(Shrink, LeavesInputAndOutputOfAResidualBlockAlone) {
  NetBuilder net("residual", 1);
  const auto x = net.input("x", {1, 16, 8, 8});
  auto y = net.conv_bn(x, {.out = 16, .kernel = 3}, graph::kRelu);
  y = net.conv_bn(y, {.out = 16, .kernel = 3});
  net.output(net.activate(net.add(y, x), graph::kRelu), "y");
  const auto half = shrunk(std::move(net).finish().value(), 0.5).value();
  EXPECT_EQ(weights_shape(half, 0), (Shape{8, 16, 3, 3}));
  EXPECT_EQ(weights_shape(half, 3), (Shape{16, 8, 3, 3}));
}

TEST(Shrink, CutsDepthwiseConvolutionAndSqueezeExciteWithTheExpansion) {
  NetBuilder net("inverted residual", 1);
  const auto x = net.input("x", {1, 8, 4, 4});
  auto y = net.conv_bn(x, {.out = 32}, graph::kRelu6);
  y = net.conv_bn(y, {.out = 32, .kernel = 3, .groups = 32}, graph::kRelu6);
  auto gate = net.conv(net.global_average_pool(y), {.out = 4, .bias = true});
  gate = net.conv(net.activate(gate, graph::kRelu), {.out = 32, .bias = true});
  y = net.mul(y, net.activate(gate, graph::kSigmoid));
  net.output(net.add(net.conv_bn(y, {.out = 8}), x), "y");
  const auto half = shrunk(std::move(net).finish().value(), 0.5).value();
  std::vector<Shape> weights;
  for (std::size_t n = 0; n < half.nodes.size(); ++n) {
    if (const auto* conv = std::get_if<graph::Conv>(&half.nodes[n].op)) {
      weights.push_back(weights_shape(half, n));
      if (conv->groups > 1) {
        EXPECT_EQ(conv->groups, 16);
      }
    }
  }
  // The gate keeps its four inner channels: they cost next to nothing.
  EXPECT_EQ(weights,
            (std::vector<Shape>{
                {16, 8, 1, 1}, {16, 1, 3, 3}, {4, 16, 1, 1}, {16, 4, 1, 1}, {8, 16, 1, 1}}));
}

TEST(Shrink, TakesWholeGroupsOfAGroupedConvolution) {
  NetBuilder net("resnext", 1);
  const auto x = net.input("x", {1, 16, 4, 4});
  auto y = net.conv_bn(x, {.out = 32}, graph::kRelu);
  y = net.conv_bn(y, {.out = 32, .kernel = 3, .groups = 8}, graph::kRelu);
  net.output(net.add(net.conv_bn(y, {.out = 16}), x), "y");
  const auto half = shrunk(std::move(net).finish().value(), 0.5).value();
  EXPECT_EQ(weights_shape(half, 3), (Shape{16, 4, 3, 3}));
  EXPECT_EQ(std::get<graph::Conv>(half.nodes[3].op).groups, 4);
}

TEST(Shrink, TakesWholeHeadsOfAnAttention) {
  constexpr std::int64_t kHeads = 4;
  constexpr std::int64_t kEach = 8;
  NetBuilder net("attention", 1);
  const auto x = net.input("x", {1, 5, kHeads * kEach});
  const auto parts = net.split(net.linear(x, 3 * kHeads * kEach), {32, 32, 32}, -1);
  const auto by_head = [&](graph::TensorId part, const graph::Ints& perm) {
    return net.transpose(net.reshape(part, {0, 0, kHeads, kEach}), perm);
  };
  const auto scores = net.matmul(by_head(parts[0], {0, 2, 1, 3}), by_head(parts[1], {0, 2, 3, 1}));
  const auto mixed = net.matmul(net.softmax(scores), by_head(parts[2], {0, 2, 1, 3}));
  const auto joined = net.reshape(net.transpose(mixed, {0, 2, 1, 3}), {0, 0, kHeads * kEach});
  net.output(net.add(net.linear(joined, kHeads * kEach), x), "y");
  const auto half = shrunk(std::move(net).finish().value(), 0.5).value();
  std::vector<Shape> weights;
  for (std::size_t n = 0; n < half.nodes.size(); ++n) {
    const auto& node = half.nodes[n];
    if (std::holds_alternative<graph::MatMul>(node.op) && half.tensor(node.inputs[1]).is_constant())
      weights.push_back(weights_shape(half, n));
  }
  EXPECT_EQ(weights, (std::vector<Shape>{{32, 3 * 2 * kEach}, {2 * kEach, 32}}));
  const auto inputs = graph::random_inputs(half, 1);
  EXPECT_EQ(graph::evaluate(half, inputs).value()[0].shape, (Shape{1, 5, 32}));
}

TEST(Shrink, HasNothingToTakeFromASingleLayer) {
  NetBuilder net("one layer", 1);
  net.output(net.conv_bn(net.input("x", {1, 8, 4, 4}), {.out = 16, .kernel = 3}), "y");
  const auto graph = std::move(net).finish().value();
  EXPECT_FALSE(can_shrink(graph));
  EXPECT_FALSE(shrunk(graph, 0.5).has_value());
}

TEST(KeptChannels, AreRoundedToWhatIsQuick) {
  EXPECT_EQ(kept_channels(64, 0.5, 1), 32);
  EXPECT_EQ(kept_channels(72, 0.5, 1), 40);
  EXPECT_EQ(kept_channels(16, 0.5, 1), 8);
  EXPECT_EQ(kept_channels(16, 0.25, 1), 4);
  EXPECT_EQ(kept_channels(6, 0.5, 1), 3);
  EXPECT_EQ(kept_channels(1, 0.25, 1), 1);
  EXPECT_EQ(kept_channels(3, 0.5, 64), 2);   // heads of 64 features each
  EXPECT_EQ(kept_channels(32, 0.25, 4), 8);  // groups of four channels
}

}  // namespace
}  // namespace fleetfit::elastic
