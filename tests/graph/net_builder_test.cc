#include "fleetfit/graph/net_builder.h"

#include <gtest/gtest.h>

#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::graph {
namespace {

TEST(NetBuilder, FollowsShapesAsLayersAreAdded) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 3, 224, 224});
  const auto stem = b.conv_bn(x, {.out = 64, .kernel = 7, .stride = 2}, kRelu);
  EXPECT_EQ(b.shape(stem), (Shape{1, 64, 112, 112}));
  const auto pooled = b.max_pool(stem, {.kernel = 3, .stride = 2, .pad = 1});
  EXPECT_EQ(b.shape(pooled), (Shape{1, 64, 56, 56}));
  b.output(b.linear(b.flatten(b.global_average_pool(pooled)), 10), "logits");
  const auto graph = std::move(b).finish().value();
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{1, 10}));
}

TEST(NetBuilder, KeepsTheFirstMistakeUntilFinish) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 3, 8, 8});
  const auto y = b.conv(x, {.out = 4, .groups = 3});
  b.output(b.conv(y, {.out = 5}), "y");
  const auto graph = std::move(b).finish();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().message,
            "net: node Conv_0 (Conv): 3 and 4 channels do not divide into 3 groups");
}

TEST(NetBuilder, NetworksTakeAnyBatch) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 8, 4, 4});
  b.output(b.flatten(b.channel_shuffle(x, 2)), "y");
  auto graph = std::move(b).finish().value();
  ASSERT_TRUE(bind_dimensions(graph, {{"N", 5}}));
  EXPECT_EQ(graph.tensor(graph.outputs[0]).shape, (Shape{5, 128}));
}

TEST(ScaledChannels, NeverFallsBelowNineTenths) {
  EXPECT_EQ(scaled_channels(32, 1), 32);
  EXPECT_EQ(scaled_channels(32, 0.75), 24);
  EXPECT_EQ(scaled_channels(24, 0.35), 8);
  EXPECT_EQ(scaled_channels(16, 1.4), 24);
}

}  // namespace
}  // namespace fleetfit::graph
