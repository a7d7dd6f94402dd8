#include "fleetfit/graph/quantize.h"

#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <set>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/zoo.h"
#include "graph/quantize/plan.h"
#include "tests/graph/quantize/quantize_testing.h"
#include "tests/sanitized.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ActivationScale, CoversTheRangeAndGivesZeroANumber) {
  // -1 to 4 in 255 steps: zero is 51 steps from the lower end.
  const auto both = quantization::activation_scale({-1, 4});
  EXPECT_FLOAT_EQ(both.scale, 5.0F / 255);
  EXPECT_EQ(both.zero_point, 51);
  const auto positive = quantization::activation_scale({2, 5.1F});
  EXPECT_FLOAT_EQ(positive.scale, 0.02F);
  EXPECT_EQ(positive.zero_point, 0);
  const auto negative = quantization::activation_scale({-2.55F, -1});
  EXPECT_FLOAT_EQ(negative.scale, 0.01F);
  EXPECT_EQ(negative.zero_point, 255);
  const auto nothing = quantization::activation_scale({0, 0});
  EXPECT_EQ(nothing.scale, 1);
  EXPECT_EQ(nothing.zero_point, 0);
}

TEST(ActivationScale, StaysANumberAtTheEndsOfFloat) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_FLOAT_EQ(quantization::activation_scale({-most, most}).scale, most / 127.5F);
  EXPECT_GT(quantization::activation_scale({0, 1e-44F}).scale, 0);
}

TEST(GuessedRanges, KnowWhatIsNeverNegative) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 8, 6, 6});
  const auto left = net.conv_bn(x, {.out = 8}, kRelu6);
  const auto sum = net.add(left, net.conv_bn(x, {.out = 8}, kRelu));
  const auto pooled = net.average_pool(net.concat({sum, left}), {.kernel = 2, .stride = 2});
  net.output(net.add(pooled, net.conv_bn(pooled, {.out = 16}, kHardSwish)), "y");
  const auto graph = prepared(std::move(net).finish().value());
  const auto ranges = guessed_ranges(graph);
  EXPECT_EQ(ranges.size(), tensors_to_observe(graph).size());
  std::map<std::string_view, std::vector<float>> lowest;  // of the results of each type
  for (const Node& node : graph.nodes) {
    const auto found = ranges.find(node.outputs[0]);
    if (found != ranges.end()) lowest[type_name(node.op)].push_back(found->second.low);
  }
  EXPECT_EQ(ranges.at(graph.inputs[0]).low, -1);
  EXPECT_THAT(lowest.at("Conv"), ElementsAre(0, 0, -1));
  EXPECT_THAT(lowest.at("Add"), ElementsAre(0, -1));
  EXPECT_THAT(lowest.at("AveragePool"), ElementsAre(0));
  EXPECT_THAT(lowest.at("HardSwish"), ElementsAre(-1));
}

TEST(Quantize, IsTheSameNetworkWhereOnlyCostsAreAskedFor) {
  NetBuilder net("net", 1);
  const auto x = net.conv_bn(net.input("x", {1, 8, 6, 6}), {.out = 12, .kernel = 3}, kRelu);
  net.output(net.linear(net.flatten(net.global_average_pool(x)), 5), "y");
  const auto graph = prepared(std::move(net).finish().value());
  const auto ranges = guessed_ranges(graph);
  const auto real = quantize(graph, ranges).value();
  const auto costs = quantize(graph, ranges, {.only_costs = true}).value();
  ASSERT_EQ(costs.nodes.size(), real.nodes.size());
  for (std::size_t n = 0; n < real.nodes.size(); ++n) {
    EXPECT_EQ(costs.nodes[n].name, real.nodes[n].name);
    EXPECT_EQ(costs.nodes[n].op, real.nodes[n].op) << real.nodes[n].name;
    EXPECT_EQ(costs.nodes[n].inputs, real.nodes[n].inputs) << real.nodes[n].name;
  }
  ASSERT_EQ(costs.tensors.size(), real.tensors.size());
  for (std::size_t i = 0; i < real.tensors.size(); ++i) {
    EXPECT_EQ(costs.tensors[i].name, real.tensors[i].name);
    EXPECT_EQ(costs.tensors[i].dtype, real.tensors[i].dtype) << real.tensors[i].name;
    EXPECT_EQ(costs.tensors[i].shape, real.tensors[i].shape) << real.tensors[i].name;
    ASSERT_EQ(costs.tensors[i].data.has_value(), real.tensors[i].data.has_value());
    if (real.tensors[i].data) {
      EXPECT_EQ(costs.tensors[i].data->size_bytes(), real.tensors[i].data->size_bytes());
    }
  }
}

TEST(LayerScales, KeepABiasThatIsLargeAgainstItsWeightsInside32Bits) {
  // Channel 0 is ordinary; channel 1 has weights of 1e-12, as a folded batch norm of a dead channel
  // leaves them; channel 2 has none at all.
  const std::vector<float> weights{1.27F, -0.5F, 1e-12F, 1e-12F, 0, 0};
  const std::vector<float> bias{0.3F, 2.0F, -0.7F};
  const quantization::ChannelView view{.channels = 3, .inner = 2};
  const auto scales = quantization::layer_scales(weights, view, bias, 0.1F);
  EXPECT_FLOAT_EQ(scales.weights[0], 0.01F);
  EXPECT_FLOAT_EQ(scales.bias[0], 0.001F);
  const auto stored = quantization::to_int32(bias, scales.bias);
  EXPECT_EQ(stored[0], 300);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(static_cast<double>(stored[i]) * static_cast<double>(scales.bias[i]),
                static_cast<double>(bias[i]), 1e-3 * 0.5)
        << i;
  EXPECT_THAT(quantization::to_int8(weights, view, scales.weights),
              ElementsAre(127, -50, 0, 0, 0, 0));
}

/// A 1x1 convolution of two channels to three with a bias, ReLU fused.
Graph small_conv(const Activation& activation = kRelu) {
  HandMade net;
  const auto x = net.input("x", {1, 2, 2, 2});
  const auto constant = [&](std::string name, Shape shape, const std::vector<float>& values) {
    return net.graph.add_tensor({.name = std::move(name),
                                 .dtype = DType::f32,
                                 .shape = std::move(shape),
                                 .data = TensorData::copy(values)});
  };
  const auto weights = constant("w", {3, 2, 1, 1}, {1.27F, -0.635F, 0.254F, 0.1F, -2.54F, 1});
  const auto bias = constant("b", {3}, {0.5F, -0.25F, 0});
  const Window window{.kernel = {1, 1},
                      .strides = {1, 1},
                      .dilations = {1, 1},
                      .pads_begin = {0, 0},
                      .pads_end = {0, 0}};
  const auto y = net.node(Conv{.window = window}, {x, weights, bias});
  net.graph.nodes.back().activation = activation;
  net.output(y, "y");
  return net.finish();
}

TEST(Quantize, StoresWeightsAndBiasAsWorkedOutByHand) {
  const auto net = small_conv();
  const auto result = quantize(net, {{0, {-1, 1.55F}}, {net.outputs[0], {-0.3F, 2.55F}}});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_THAT(node_types(*result),
              ElementsAre("QuantizeLinear", "DequantizeLinear", "DequantizeLinear",
                          "DequantizeLinear", "Conv+Relu", "QuantizeLinear", "DequantizeLinear"));
  const auto& conv = result->nodes[4];

  // The input: 2.55 wide, so steps of 0.01 and zero at 100.
  const auto& x = maker_of(*result, conv.inputs[0]);
  EXPECT_NEAR(constant_input(*result, x, 1)[0], 0.01, 1e-9);
  EXPECT_THAT(constant_input(*result, x, 2), ElementsAre(100));

  // Weights: largest of each row over 127.
  const auto& weights = maker_of(*result, conv.inputs[1]);
  EXPECT_EQ(std::get<DequantizeLinear>(weights.op).axis, 0);
  EXPECT_EQ(result->tensor(weights.inputs[0]).dtype, DType::i8);
  EXPECT_THAT(constant_input(*result, weights, 0), ElementsAre(127, -64, 127, 50, -127, 50));
  EXPECT_THAT(constant_input(*result, weights, 2), ElementsAre(0, 0, 0));
  const auto scales = constant_input(*result, weights, 1);
  EXPECT_THAT(scales,
              ElementsAre(::testing::DoubleNear(0.01, 1e-8), ::testing::DoubleNear(0.002, 1e-8),
                          ::testing::DoubleNear(0.02, 1e-8)));

  // Bias: 0.5 / (0.01 * 0.01), -0.25 / (0.01 * 0.002), 0.
  const auto& bias = maker_of(*result, conv.inputs[2]);
  EXPECT_EQ(std::get<DequantizeLinear>(bias.op).axis, 0);
  EXPECT_EQ(result->tensor(bias.inputs[0]).dtype, DType::i32);
  EXPECT_EQ(bias.inputs.size(), 2U);
  EXPECT_THAT(constant_input(*result, bias, 0), ElementsAre(5000, -12500, 0));

  // After ReLU nothing is negative, whatever range was asked for.
  const auto& y = result->nodes[5];
  EXPECT_NEAR(constant_input(*result, y, 1)[0], 0.01, 1e-9);
  EXPECT_THAT(constant_input(*result, y, 2), ElementsAre(0));
  EXPECT_EQ(result->tensor(result->outputs[0]).name, "y");
  EXPECT_EQ(result->tensor(result->outputs[0]).dtype, DType::f32);
}

TEST(Quantize, ErrorOfALayerStaysWithinItsRoundings) {
  const auto net = small_conv();
  const auto result = quantized(net);
  const auto inputs = random_inputs(net, 7);
  const auto want = evaluate(net, inputs).value().front();
  const auto got = evaluate(result, inputs).value().front();
  // Half a step of the input for each weight, of the weights for each input (at most 1), of the
  // output; steps: the input's at most 2/255, the weights' at most 0.02, the output's range at most
  // |w| + |b|.
  const double bound = 0.5 * (2.0 / 255) * (2.54 + 1) + 2 * 0.5 * 0.02 + 0.5 * 4.04 / 255 + 1e-4;
  for (std::size_t i = 0; i < 12; ++i)
    EXPECT_NEAR(number_at(got, i), number_at(want, i), bound) << i;
}

TEST(Quantize, OneScaleForAllChannelsWhereAskedFor) {
  const auto net = small_conv();
  const auto result = quantized(net, {.per_channel = false});
  const auto& conv = node_named(result, "node_0");
  const auto& weights = maker_of(result, conv.inputs[1]);
  const auto scale = constant_input(result, weights, 1);
  ASSERT_EQ(scale.size(), 1U);
  EXPECT_NEAR(scale[0], 2.54 / 127, 1e-8);
  EXPECT_TRUE(result.tensor(weights.inputs[1]).shape->empty());
  EXPECT_EQ(constant_input(result, maker_of(result, conv.inputs[2]), 1).size(), 1U);
  EXPECT_GT(signal_to_noise(net, result), 25);
}

TEST(Quantize, ClipAtSixHasItsZeroAtZero) {
  const auto net = small_conv(kRelu6);
  const auto result = quantize(net, {{0, {-1, 1}}, {net.outputs[0], {-3, 9}}}).value();
  const auto& y = node_named(result, "y.quantize");
  EXPECT_NEAR(constant_input(result, y, 1)[0], 6.0 / 255, 1e-8);
  EXPECT_THAT(constant_input(result, y, 2), ElementsAre(0));
}

TEST(Quantize, RoundsBetweenALayerAndACurvedActivation) {
  for (const auto& function : {kHardSwish, kSigmoid, kHardSigmoid}) {
    const auto net = prepared(small_conv(function));
    EXPECT_EQ(tensors_to_observe(net).size(), 3U);
    const auto types = node_types(quantized(net));
    EXPECT_EQ(count_of(types, "Conv"), 1U);
    EXPECT_EQ(count_of(types, "QuantizeLinear"), 3U);
  }
}

TEST(Quantize, WritesSiluAsItsTwoOperatorsWithRoundingBetween) {
  const auto net = prepared(small_conv(kSilu));
  expect_same_results(small_conv(kSilu), net);
  const auto types = node_types(quantized(net));
  EXPECT_EQ(count_of(types, "Sigmoid"), 1U);
  EXPECT_EQ(count_of(types, "Mul"), 1U);
  EXPECT_EQ(count_of(types, "QuantizeLinear"), 4U);
}

TEST(Quantize, ConcatAndWhatMovesItsPartsShareOneScale) {
  NetBuilder net("concat", 1);
  const auto x = net.input("x", {1, 4, 8, 8});
  const auto a = net.activate(net.conv(x, {.out = 4}), kRelu);
  const auto b =
      net.max_pool(net.conv(x, {.out = 4, .kernel = 3}), {.kernel = 3, .stride = 1, .pad = 1});
  const auto both = net.concat({a, b});
  net.output(net.conv(net.channel_shuffle(both, 2), {.out = 2}), "y");
  const auto graph = prepared(finished(std::move(net)));

  auto ranges = made_up_ranges(graph);
  ASSERT_EQ(ranges.size(), 4U);  // input, two convolutions, output
  for (const auto& node : graph.nodes) {
    if (node.activation) ranges[node.outputs[0]] = {0, 8};
  }
  const auto result = quantize(graph, ranges).value();
  std::map<TensorId, int> uses;
  for (const auto& node : result.nodes) {
    if (std::holds_alternative<QuantizeLinear>(node.op)) ++uses[node.inputs[1]];
  }
  // Both convolutions, pool, concat and shuffle: from -1 (one part) to 8 (the other).
  const auto shared = std::max_element(uses.begin(), uses.end(),
                                       [](auto& p, auto& q) { return p.second < q.second; });
  EXPECT_EQ(shared->second, 5);
  EXPECT_EQ(uses.size(), 3U);
  EXPECT_NEAR(constant_numbers(result, shared->first)->front(), 9.0 / 255, 1e-8);
}

TEST(Quantize, LeavesSoftmaxAndLayerNormInFloat) {
  NetBuilder net("attention", 1);
  const auto x = net.input("x", {1, 6, 8});
  const auto normal = net.layer_norm(x);
  const auto q = net.linear(normal, 8);
  const auto scores = net.softmax(net.matmul(q, net.transpose(q, {0, 2, 1})));
  net.output(net.softmax(net.matmul(scores, q)), "y");
  const auto float_graph = finished(std::move(net));
  const auto graph = prepared(float_graph);
  expect_same_results(float_graph, graph);
  const auto result = quantized(graph);
  // The bias is in the Gemm, with 32 bits; the last softmax is not rounded.
  const auto types = node_types(result);
  EXPECT_EQ(count_of(types, "Gemm"), 1U);
  EXPECT_EQ(count_of(types, "Add"), 0U);
  EXPECT_TRUE(std::holds_alternative<Softmax>(maker_of(result, result.outputs[0]).op));
  EXPECT_GT(signal_to_noise(graph, result), 30);
}

TEST(Quantize, ABatchNormBeforeItsLayerBecomesAConvolution) {
  NetBuilder net("preactivation", 2);
  const auto x = net.input("x", {1, 6, 5, 5});
  const auto normal = net.activate(net.batch_norm(net.concat({x, x})), kRelu);
  net.output(net.conv(normal, {.out = 4}), "y");
  const auto float_graph = finished(std::move(net));
  const auto graph = prepared(float_graph);
  expect_same_results(float_graph, graph);
  auto result = quantized(graph);
  EXPECT_GT(signal_to_noise(graph, result), 30);
  ASSERT_TRUE(to_quantized_tensors(result));
  EXPECT_THAT(node_types(result),
              ElementsAre("Requantize", "Concat", "Conv+Relu", "Conv", "Requantize"));
}

TEST(Quantize, TransposedConvolutionsAndConstantsInSumsAreQuantizedToo) {
  NetBuilder net("decoder", 1);
  const auto x = net.input("x", {1, 4, 5, 5});
  auto y = net.conv_transpose(x, {.out = 6, .kernel = 2, .stride = 2, .pad = 0, .bias = true});
  y = net.add(y, net.parameter("offset", {1, 6, 10, 10}, 0.5));
  y = net.resize(y, 2, ResizeMode::linear);
  net.output(net.average_pool(y, {}), "y");
  const auto graph = prepared(finished(std::move(net)));
  const auto result = quantized(graph);
  // x, the transposed convolution, sum, resized, pooled; the offset is stored as uint8.
  EXPECT_EQ(count_of(node_types(result), "QuantizeLinear"), 5U);
  EXPECT_GT(signal_to_noise(graph, result), 30);
}

TEST(Quantize, KeepsNamedNodesInFloat) {
  const auto net = prepared(small_conv(kHardSwish));
  const auto result = quantized(net, {.keep_float = {"node_0"}});
  const auto& conv = node_named(result, "node_0");
  EXPECT_TRUE(result.tensor(conv.inputs[1]).is_constant());
  EXPECT_EQ(conv.inputs[0], result.inputs[0]);
  EXPECT_EQ(count_of(node_types(result), "QuantizeLinear"), 2U);  // around the activation

  const auto unknown = quantize(net, observed_ranges(net), {.keep_float = {"nobody"}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("'nobody'"));
}

TEST(Quantize, NamesTheTensorWhoseRangeIsNoRange) {
  const auto net = small_conv();
  const ValueRange fine{-1, 1};
  for (const ValueRange bad : {ValueRange{kNan, 1}, ValueRange{0, kNan}, ValueRange{-kInfinity, 0},
                               ValueRange{0, kInfinity}, ValueRange{1, -1}}) {
    const auto result = quantize(net, {{0, fine}, {net.outputs[0], bad}});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
    EXPECT_THAT(result.error().message, HasSubstr("tensor 'y'"));
  }
  const auto missing = quantize(net, {{net.outputs[0], fine}});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("tensor 'x' is not known"));
}

TEST(Quantize, NamesWeightsThatAreNotFinite) {
  auto net = small_conv();
  const auto weights = net.nodes[0].inputs[1];
  net.tensor(weights).data = TensorData::copy(std::vector<float>{1, 2, kNan, 4, 5, 6});
  const auto result = quantize(net, made_up_ranges(net));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("node_0"));
  EXPECT_THAT(result.error().message, HasSubstr("'w'"));
}

TEST(Quantize, RefusesAQuantizedNetwork) {
  const auto again = prepare_for_quantization(quantized(small_conv()));
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("quantized already"));
}

// A rounding to 8 bits leaves some 38 dB of signal: 6 dB for each bit, less 10 for values that
// rarely reach the ends of their range. With n roundings in a row noise grows n-fold, or by
// 10 log10(n) dB; the 50 of mobilenet_v2 leave 21 dB. A hundred outputs tell that within 3 dB.
TEST(Quantize, WholeNetworksStayCloseToTheirFloatForm) {
  for (const auto* name : {"mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "resnet18"}) {
    if (kSanitized && std::string(name) != "mobilenet_v3_small") continue;
    const auto graph =
        build_zoo_network(name, {.width = 0.25, .classes = 100, .image = 32}).value();
    const auto ready = prepared(graph);
    expect_same_results(graph, ready);
    EXPECT_GT(signal_to_noise(ready, quantized(ready)), 18) << name;
  }
}

class ZooQuantize : public ::testing::TestWithParam<std::string> {};

std::size_t constant_bytes(const Graph& graph) {
  std::size_t sum = 0;
  for (const auto& tensor : graph.tensors) sum += tensor.data ? tensor.data->size_bytes() : 0;
  return sum;
}

/// The smallest network of each family.
std::vector<std::string> smallest_networks() {
  std::map<std::string, std::pair<std::size_t, std::string>> smallest;
  for (const auto& entry : zoo()) {
    const auto size = constant_bytes(build_zoo_network(entry.name).value());
    auto& best = smallest[entry.family];
    if (best.second.empty() || size < best.first) best = {size, entry.name};
  }
  std::vector<std::string> names;
  for (const auto& [family, best] : smallest) names.push_back(best.second);
  return names;
}

TEST_P(ZooQuantize, GivesAValidNetworkWithItsLayersInWholeNumbers) {
  const auto network = build_zoo_network(GetParam()).value();
  if (kSanitized && constant_bytes(network) > 20'000'000)
    GTEST_SKIP() << "large networks take too long under sanitizers";
  const auto graph = prepared(network);
  auto result = quantize(graph, made_up_ranges(graph));
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_TRUE(validate(*result)) << validate(*result).error().message;
  for (const auto& node : result->nodes) {
    const bool layer =
        std::holds_alternative<Conv>(node.op) || std::holds_alternative<Gemm>(node.op);
    if (layer) {
      EXPECT_TRUE(std::holds_alternative<DequantizeLinear>(maker_of(*result, node.inputs[1]).op))
          << describe(node);
    }
  }
  EXPECT_LT(constant_bytes(*result), constant_bytes(network) / 2 + 1'000'000);

  ASSERT_TRUE(to_quantized_tensors(*result, {.merge_activations = true}));
  ASSERT_TRUE(validate(*result)) << validate(*result).error().message;
  for (const auto& node : result->nodes) {
    if (std::holds_alternative<Conv>(node.op)) {
      EXPECT_EQ(result->tensor(node.inputs[0]).dtype, DType::u8) << describe(node);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ZooQuantize, ::testing::ValuesIn(smallest_networks()),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace fleetfit::graph
