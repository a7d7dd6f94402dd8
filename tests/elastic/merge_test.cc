#include "elastic/merge.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/net_builder.h"
#include "set_weights.h"

namespace fleetfit::elastic {
namespace {

using graph::NetBuilder;
using graph::Shape;

struct Size {
  std::int64_t in = 8;
  std::int64_t out = 8;
  std::int64_t stride = 1;
  std::int64_t image = 16;
};

graph::Graph residual(const Size& size, std::uint64_t seed = 1) {
  NetBuilder net("residual", seed);
  auto x = net.input("x", {1, size.in, size.image, size.image});
  auto y = net.conv_bn(x, {.out = size.out, .kernel = 3, .stride = size.stride}, graph::kRelu);
  y = net.conv_bn(y, {.out = size.out, .kernel = 3});
  if (size.stride != 1 || size.in != size.out)
    x = net.conv_bn(x, {.out = size.out, .stride = size.stride});
  net.output(net.activate(net.add(y, x), graph::kRelu), "y");
  return std::move(net).finish().value();
}

/// The input with `growth` new channels behind it.
graph::Graph dense_layer(std::int64_t in, std::int64_t growth) {
  NetBuilder net("dense layer", 1);
  const auto x = net.input("x", {1, in, 4, 4});
  const auto inner = net.conv_bn(x, {.out = 16}, graph::kRelu);
  net.output(net.concat({x, net.conv(inner, {.out = growth, .kernel = 3})}), "y");
  return std::move(net).finish().value();
}

std::optional<graph::Graph> merge(const std::vector<graph::Graph>& blocks) {
  std::vector<const graph::Graph*> pointers;
  for (const auto& block : blocks) pointers.push_back(&block);
  return merged(pointers);
}

Shape shape_in(const graph::Graph& block) { return *block.tensor(block.inputs[0]).shape; }
Shape shape_out(const graph::Graph& block) { return *block.tensor(block.outputs[0]).shape; }

TEST(Merge, TakesTheReplacedBlockThatHasTheShapes) {
  const auto down = residual({.in = 8, .out = 16, .stride = 2}, 5);
  const auto block =
      merge({residual({}), down, residual({.in = 16, .out = 16, .image = 8})}).value();
  EXPECT_EQ(graph::first_difference(block, down), std::nullopt);
}

TEST(Merge, OfAlikeBlocksTakesTheFirst) {
  const auto first = residual({}, 7);
  const auto block = merge({first, residual({}, 8)}).value();
  EXPECT_EQ(graph::first_difference(block, first), std::nullopt);
}

TEST(Merge, GivesTheLastBlockTheChannelsAndTheStepsOfAll) {
  const auto block = merge({residual({.in = 8, .out = 16, .stride = 2}),
                            residual({.in = 16, .out = 32, .stride = 2, .image = 8})})
                         .value();
  EXPECT_EQ(shape_in(block), (Shape{1, 8, 16, 16}));
  EXPECT_EQ(shape_out(block), (Shape{1, 32, 4, 4}));
  const auto inputs = graph::random_inputs(block, 1);
  EXPECT_EQ(graph::evaluate(block, inputs).value()[0].shape, (Shape{1, 32, 4, 4}));
}

TEST(Merge, LetsADenseLayerGiveTheNewChannelsOfAll) {
  const auto block = merge({dense_layer(8, 2), dense_layer(10, 2)}).value();
  EXPECT_EQ(shape_in(block), (Shape{1, 8, 4, 4}));
  EXPECT_EQ(shape_out(block), (Shape{1, 12, 4, 4}));
  // What goes in comes out first, unchanged.
  const auto inputs = graph::random_inputs(block, 1);
  const auto outputs = graph::evaluate(block, inputs).value();
  const auto x = inputs[0].data.as<float>();
  const auto y = outputs[0].data.as<float>();
  EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin()));
}

TEST(Merge, OffersNothingThatSavesNoWork) {
  // Nothing can be left out of two plain layers that each add channels.
  const auto plain = [](std::int64_t in) {
    NetBuilder net("plain dense layer", 1);
    const auto x = net.input("x", {1, in, 4, 4});
    net.output(net.concat({x, net.conv(x, {.out = 2, .kernel = 3})}), "y");
    return std::move(net).finish().value();
  };
  EXPECT_FALSE(merge({plain(30), plain(32)}).has_value());
}

TEST(Fitted, IsNothingWhereTheSkipHoldsTheChannels) {
  EXPECT_FALSE(fitted(residual({}), {1, 4, 16, 16}, {1, 8, 16, 16}).has_value());
}

}  // namespace
}  // namespace fleetfit::elastic
