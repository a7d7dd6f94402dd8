#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;

TEST(FuseActivations, LetsLayersApplyThem) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {1, 3, 8, 8});
  x = b.activate(b.conv(x, {.out = 4}), kRelu);
  x = b.activate(b.add(x, b.activate(x, kSigmoid)), kRelu6);
  x = b.activate(b.average_pool(x, {}), kHardSwish);
  x = b.activate(b.linear(b.flatten(x), 5), kTanh);
  b.output(x, "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "fuse_activations")),
              ElementsAre("Conv+Relu", "Sigmoid", "Add+Clip", "AveragePool+HardSwish", "Flatten",
                          "Gemm+Tanh"));
}

TEST(FuseActivations, FusesOnlyTheFirstOfTwo) {
  NetBuilder b("net", 1);
  auto x = b.conv(b.input("x", {1, 3, 8, 8}), {.out = 4});
  b.output(b.activate(b.activate(x, kRelu), kSigmoid), "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "fuse_activations")),
              ElementsAre("Conv+Relu", "Sigmoid"));
}

TEST(FuseActivations, LeavesALayerThatOthersRead) {
  NetBuilder b("net", 1);
  const auto x = b.conv(b.input("x", {1, 3, 8, 8}), {.out = 4});
  b.output(b.concat({b.activate(x, kRelu), x}), "y");
  expect_untouched(finished(std::move(b)), "fuse_activations");
}

TEST(FuseActivations, LeavesALayerThatIsAnOutput) {
  NetBuilder b("net", 1);
  const auto x = b.conv(b.input("x", {1, 3, 8, 8}), {.out = 4});
  b.output(x, "logits");
  b.output(b.activate(x, kSigmoid), "y");
  expect_untouched(finished(std::move(b)), "fuse_activations");
}

TEST(FuseActivations, LeavesOperatorsThatHaveNone) {
  NetBuilder b("net", 1);
  b.output(b.activate(b.softmax(b.input("x", {1, 8})), kRelu), "y");
  expect_untouched(finished(std::move(b)), "fuse_activations");
}

// A convolution and an activation on int8 tensors with these scales.
Graph quantized(const Activation& activation, float before, float after) {
  HandMade h;
  const auto x = h.input("x", {1, 2, 4, 4});
  const Window window{.kernel = {1, 1},
                      .strides = {1, 1},
                      .dilations = {1, 1},
                      .pads_begin = {0, 0},
                      .pads_end = {0, 0}};
  const auto stored = h.node(Requantize{DType::i8}, {x});
  h.graph.tensor(stored).quantization = Quantization{{1.0F / 128}, {0}, {}};
  const auto weights = h.node(Requantize{DType::i8}, {h.floats({2, 2, 1, 1}, 3)});
  h.graph.tensor(weights).quantization = Quantization{{1.0F / 128}, {0}, {}};
  const auto y = h.node(Conv{window}, {stored, weights});
  h.graph.tensor(y).dtype = DType::i8;
  h.graph.tensor(y).quantization = Quantization{{before}, {5}, {}};
  const auto z = h.node(Activate{activation}, {y});
  h.graph.tensor(z).dtype = DType::i8;
  h.graph.tensor(z).quantization = Quantization{{after}, {5}, {}};
  h.output(h.node(Requantize{DType::f32}, {z}), "y");
  return h.finish();
}

TEST(FuseActivations, FusesBoundsOnOneGridOfWholeNumbers) {
  const auto before = quantized(kRelu, 0.02F, 0.02F);
  auto after = before;
  ASSERT_TRUE(run_pass(after, "fuse_activations").value());
  expect_same_results(before, after, 0);
}

TEST(FuseActivations, LeavesRoundingBetweenTwoGrids) {
  expect_untouched(quantized(kRelu, 0.02F, 0.01F), "fuse_activations");
  expect_untouched(quantized(kSigmoid, 0.02F, 0.02F), "fuse_activations");
}

}  // namespace
}  // namespace fleetfit::graph
