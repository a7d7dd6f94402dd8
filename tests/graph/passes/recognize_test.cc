#include "pass_testing.h"

namespace fleetfit::graph {
namespace {

using testing::ElementsAre;

TensorId number(NetBuilder& b, double value) { return b.parameter("number", {}, 0, value); }

TensorId divided(NetBuilder& b, TensorId x, double by) {
  return b.node(Elementwise{ElementwiseKind::div}, {x, number(b, by)});
}

TensorId erf(NetBuilder& b, TensorId x) { return b.node(Unary{UnaryKind::erf}, {x}); }

TensorId power(NetBuilder& b, TensorId x, double exponent) {
  return b.node(Elementwise{ElementwiseKind::pow}, {x, number(b, exponent)});
}

// The pass applied to `write` of an input; the inputs spread from -4 to 4 to reach all branches.
std::vector<std::string> recognized(const std::function<TensorId(NetBuilder&, TensorId)>& write) {
  NetBuilder b("net", 1);
  const auto x = b.scale(b.input("x", {1, 8, 5, 5}), 4);
  const auto barrier = b.max_pool(x, {.kernel = 1, .stride = 1});
  b.output(write(b, barrier), "y");
  const auto types = node_types(after_pass(finished(std::move(b)), "recognize_activations"));
  return {types.begin() + 2, types.end()};
}

TEST(RecognizeActivations, FindsSilu) {
  EXPECT_THAT(
      recognized([](NetBuilder& b, TensorId x) { return b.mul(b.activate(x, kSigmoid), x); }),
      ElementsAre("Silu"));
}

TEST(RecognizeActivations, FindsHardSwishInItsThreeForms) {
  const auto relu6_of_x_plus_3 = [](NetBuilder& b, TensorId x) {
    return b.activate(b.add(x, number(b, 3)), kRelu6);
  };
  EXPECT_THAT(recognized([&](NetBuilder& b, TensorId x) {
                return divided(b, b.mul(x, relu6_of_x_plus_3(b, x)), 6);
              }),
              ElementsAre("HardSwish"));
  EXPECT_THAT(recognized([&](NetBuilder& b, TensorId x) {
                return b.mul(x, b.scale(relu6_of_x_plus_3(b, x), 1.0 / 6.0));
              }),
              ElementsAre("HardSwish"));
  EXPECT_THAT(
      recognized([&](NetBuilder& b, TensorId x) { return b.mul(x, b.activate(x, kHardSigmoid)); }),
      ElementsAre("HardSwish"));
}

TEST(RecognizeActivations, FindsHardSigmoidWithItsParameters) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 8});
  const auto shifted = b.add(x, number(b, 3));
  b.output(divided(b, b.activate(shifted, kRelu6), 6), "y");
  const auto after = after_pass(finished(std::move(b)), "recognize_activations");
  ASSERT_THAT(node_types(after), ElementsAre("HardSigmoid"));
  EXPECT_EQ(std::get<Activate>(after.nodes[0].op).function, kHardSigmoid);
}

TEST(RecognizeActivations, FindsGeluWhateverTheOrder) {
  const double root2 = std::sqrt(2.0);
  EXPECT_THAT(recognized([&](NetBuilder& b, TensorId x) {
                const auto tail = b.add(erf(b, divided(b, x, root2)), number(b, 1));
                return b.scale(b.mul(x, tail), 0.5);
              }),
              ElementsAre("Gelu"));
  EXPECT_THAT(recognized([&](NetBuilder& b, TensorId x) {
                const auto tail = b.add(number(b, 1), erf(b, b.scale(x, 1 / root2)));
                return b.mul(b.scale(x, 0.5), tail);
              }),
              ElementsAre("Gelu"));
}

TEST(RecognizeActivations, TellsTheTanhApproximationOfGeluFromGelu) {
  EXPECT_THAT(recognized([](NetBuilder& b, TensorId x) {
                const auto cubic = b.add(x, b.scale(power(b, x, 3), 0.044715));
                const auto tanh = b.activate(b.scale(cubic, std::sqrt(2 / M_PI)), kTanh);
                return b.mul(b.scale(x, 0.5), b.add(tanh, number(b, 1)));
              }),
              ElementsAre("GeluTanh"));
}

TEST(RecognizeActivations, FindsMishAndSimpleOnes) {
  EXPECT_THAT(recognized([](NetBuilder& b, TensorId x) {
                return b.mul(x, b.activate(b.activate(x, {ActivationKind::softplus}), kTanh));
              }),
              ElementsAre("Mish"));
  EXPECT_THAT(recognized([](NetBuilder& b, TensorId x) {
                return b.node(Elementwise{ElementwiseKind::max}, {x, number(b, 0)});
              }),
              ElementsAre("Relu"));
  EXPECT_THAT(recognized([](NetBuilder& b, TensorId x) {
                return b.node(Elementwise{ElementwiseKind::max}, {x, b.scale(x, 0.125)});
              }),
              ElementsAre("LeakyRelu"));
}

TEST(RecognizeActivations, LeavesOtherConstants) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 8});
  const auto shifted = b.activate(b.add(x, number(b, 3)), kRelu6);
  b.output(b.scale(b.mul(x, shifted), 0.17), "almost hard-swish");
  b.output(b.mul(x, b.activate(b.scale(x, 1.702), kSigmoid)), "quick gelu");
  b.output(b.mul(x, b.activate(x, {ActivationKind::hard_sigmoid, 0.2F, 0.5F})), "slope 0.2");
  b.output(b.node(Elementwise{ElementwiseKind::min}, {x, number(b, 6)}), "half a clip");
  expect_untouched(finished(std::move(b)), "recognize_activations");
}

TEST(RecognizeActivations, LeavesWhatOthersReadOnTheWay) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 8});
  const auto gate = b.activate(x, kSigmoid);
  b.output(b.mul(x, gate), "y");
  b.output(gate, "gate");
  expect_untouched(finished(std::move(b)), "recognize_activations");
}

TEST(RecognizeActivations, LeavesProductsOfTwoTensors) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 8});
  const auto other = b.input("other", {1, 8});
  b.output(b.mul(x, b.activate(other, kSigmoid)), "y");
  expect_untouched(finished(std::move(b)), "recognize_activations");
}

// d / sqrt(mean(d^2) + 1e-5), each part as networks write it.
TensorId normalized(NetBuilder& b, TensorId x) {
  const auto d = b.sub(x, b.mean(x, {-1}, true));
  const auto variance = b.mean(power(b, d, 2), {-1}, true);
  const auto root = b.node(Unary{UnaryKind::sqrt}, {b.add(variance, number(b, 1e-5))});
  return b.node(Elementwise{ElementwiseKind::div}, {d, root});
}

TEST(RecognizeLayerNorm, FindsItWithScaleAndShift) {
  NetBuilder b("net", 1);
  const auto n = normalized(b, b.input("x", {2, 5, 8}));
  const auto y = b.add(b.mul(n, b.parameter("scale", {8}, 1)), b.parameter("shift", {8}, 1));
  b.output(y, "y");
  const auto after = after_pass(finished(std::move(b)), "recognize_layer_norm");
  ASSERT_THAT(node_types(after), ElementsAre("LayerNormalization"));
  EXPECT_EQ(after.nodes[0].op, Operator(LayerNorm{-1, 1e-5F}));
}

TEST(RecognizeLayerNorm, FindsItWithReciprocalRootAndWithoutScale) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {2, 5, 8});
  const auto d = b.sub(x, b.mean(x, {1, 2}, true));
  const auto again = b.sub(x, b.mean(x, {1, 2}, true));
  const auto variance = b.mean(b.mul(again, again), {1, 2}, true);
  const auto root = b.node(Unary{UnaryKind::rsqrt}, {b.add(number(b, 1e-6), variance)});
  b.output(b.mul(root, d), "y");
  EXPECT_THAT(node_types(after_pass(finished(std::move(b)), "recognize_layer_norm")),
              ElementsAre("LayerNormalization"));
}

TEST(RecognizeLayerNorm, LeavesANormOverOtherDimensions) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {2, 5, 8});
  const auto d = b.sub(x, b.mean(x, {1}, true));
  const auto variance = b.mean(b.mul(d, d), {1}, true);
  const auto root = b.node(Unary{UnaryKind::sqrt}, {b.add(variance, number(b, 1e-6))});
  b.output(b.node(Elementwise{ElementwiseKind::div}, {d, root}), "y");
  expect_untouched(finished(std::move(b)), "recognize_layer_norm");
}

TEST(RecognizeLayerNorm, LeavesOneWhoseDeviationIsReadElsewhere) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {2, 5, 8});
  const auto d = b.sub(x, b.mean(x, {-1}, true));
  const auto variance = b.mean(b.mul(d, d), {-1}, true);
  const auto root = b.node(Unary{UnaryKind::sqrt}, {b.add(variance, number(b, 1e-6))});
  b.output(b.node(Elementwise{ElementwiseKind::div}, {d, root}), "y");
  b.output(b.activate(d, kRelu), "deviation");
  expect_untouched(finished(std::move(b)), "recognize_layer_norm");
}

TEST(RecognizeChannelShuffle, FindsItInBothLayouts) {
  NetBuilder b("net", 1);
  b.output(b.channel_shuffle(b.input("x", {2, 12, 3, 5}), 3), "y");
  const auto nchw = after_pass(finished(std::move(b)), "recognize_channel_shuffle");
  ASSERT_THAT(node_types(nchw), ElementsAre("ChannelShuffle"));
  EXPECT_EQ(nchw.nodes[0].op, Operator(ChannelShuffle{3, Layout::nchw}));

  NetBuilder c("net", 1);
  auto x = c.input("x", {2, 3, 5, 12});
  x = c.transpose(c.reshape(x, {0, 3, 5, 2, 6}), {0, 1, 2, 4, 3});
  c.output(c.reshape(x, {0, 3, 5, 12}), "y");
  const auto nhwc = after_pass(finished(std::move(c)), "recognize_channel_shuffle");
  ASSERT_THAT(node_types(nhwc), ElementsAre("ChannelShuffle"));
  EXPECT_EQ(nhwc.nodes[0].op, Operator(ChannelShuffle{2, Layout::nhwc}));
}

TEST(RecognizeChannelShuffle, LeavesOtherRearrangements) {
  NetBuilder b("net", 1);
  auto x = b.input("x", {2, 12, 3, 4});
  x = b.transpose(b.reshape(x, {0, 12, 4, 3}), {0, 1, 3, 2});
  b.output(b.reshape(x, {0, 12, 3, 4}), "y");
  expect_untouched(finished(std::move(b)), "recognize_channel_shuffle");
}

TEST(RecognizeGlobalPool, FindsMeansOverAllPixels) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 4, 6, 8});
  b.output(b.mean(x, {2, 3}, true), "nchw");
  b.output(b.node(Reduce{.kind = ReduceKind::max, .axes = {-2, -3}}, {x}), "nhwc");
  const auto after = after_pass(finished(std::move(b)), "recognize_global_pool");
  EXPECT_EQ(after.nodes[0].op, Operator(GlobalPool{PoolKind::average, Layout::nchw}));
  EXPECT_EQ(after.nodes[1].op, Operator(GlobalPool{PoolKind::max, Layout::nhwc}));
}

TEST(RecognizeGlobalPool, LeavesOtherReductions) {
  NetBuilder b("net", 1);
  const auto x = b.input("x", {1, 4, 6, 8});
  b.output(b.mean(x, {2, 3}), "rank changes");
  b.output(b.mean(x, {1, 3}, true), "channels too");
  b.output(b.mean(x, {3}, true), "rows");
  expect_untouched(finished(std::move(b)), "recognize_global_pool");
}

}  // namespace
}  // namespace fleetfit::graph
