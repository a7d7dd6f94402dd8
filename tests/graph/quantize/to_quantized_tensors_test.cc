#include <gmock/gmock.h>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/zoo.h"
#include "tests/graph/quantize/quantize_testing.h"
#include "tests/sanitized.h"
#include "tests/shared_data.h"

namespace fleetfit::graph {
namespace {

using ::testing::ElementsAre;

Graph absorbed(Graph graph, const QuantizedTensorOptions& options = {}) {
  const auto ok = to_quantized_tensors(graph, options);
  if (!ok) throw std::runtime_error(ok.error().message);
  return graph;
}

Graph reimported(const Graph& graph) {
  const auto bytes = export_onnx(graph).value();
  auto again = import_onnx(std::as_bytes(std::span(bytes)), "nowhere").value().graph;
  const auto ok = simplify(again);
  if (!ok) throw std::runtime_error(ok.error().message);
  return again;
}

Graph one_conv(const Activation& activation) {
  NetBuilder net("conv", 3);
  const auto x = net.input("x", {1, 4, 6, 6});
  net.output(net.activate(net.conv(x, {.out = 8, .kernel = 3, .bias = true}), activation), "y");
  return prepared(finished(std::move(net)));
}

TEST(ToQuantizedTensors, MakesALayerOnQuantizedTensors) {
  const auto before = quantized(one_conv(kRelu));
  const auto after = absorbed(before);
  EXPECT_THAT(node_types(after), ElementsAre("Requantize", "Conv+Relu", "Requantize"));
  const auto& conv = after.nodes[1];
  EXPECT_EQ(after.tensor(conv.inputs[0]).dtype, DType::u8);
  EXPECT_EQ(after.tensor(conv.inputs[1]).dtype, DType::i8);
  EXPECT_EQ(after.tensor(conv.inputs[1]).quantization->axis, 0);
  EXPECT_EQ(after.tensor(conv.inputs[1]).quantization->scales.size(), 8U);
  EXPECT_EQ(after.tensor(conv.inputs[2]).dtype, DType::i32);
  EXPECT_EQ(after.tensor(conv.outputs[0]).dtype, DType::u8);
  expect_equivalent(before, after, 0);
}

TEST(ToQuantizedTensors, TakesReluInFromAFile) {
  const auto quantized_graph = quantized(one_conv(kRelu6));
  const auto after = absorbed(reimported(quantized_graph));
  EXPECT_THAT(node_types(after), ElementsAre("Requantize", "Conv+Clip", "Requantize"));
  expect_equivalent(quantized_graph, after, 0);
}

TEST(ToQuantizedTensors, KeepsTheRoundingBeforeAnActivationUnlessTold) {
  const auto before = quantized(one_conv(kHardSwish));
  const auto kept = absorbed(before);
  EXPECT_THAT(node_types(kept), ElementsAre("Requantize", "Conv", "HardSwish", "Requantize"));
  expect_equivalent(before, kept, 0);
  const auto merged = absorbed(before, {.merge_activations = true});
  EXPECT_THAT(node_types(merged), ElementsAre("Requantize", "Conv+HardSwish", "Requantize"));
}

TEST(ToQuantizedTensors, MergesSiluFromItsTwoOperators) {
  const auto exact = one_conv(kSilu);
  for (const auto& before : {quantized(exact), reimported(quantized(exact))}) {
    EXPECT_EQ(count_of(node_types(before), "Sigmoid"), 1U);
    const auto merged = absorbed(before, {.merge_activations = true});
    EXPECT_THAT(node_types(merged), ElementsAre("Requantize", "Conv", "Silu", "Requantize"));
    // One rounding less.
    EXPECT_GT(signal_to_noise(exact, merged), signal_to_noise(exact, before));
  }
}

TEST(ToQuantizedTensors, DoesNotMergeWhatSomebodyElseReads) {
  NetBuilder net("conv", 3);
  const auto x = net.input("x", {1, 4, 6, 6});
  const auto y = net.conv(x, {.out = 4, .kernel = 3});
  net.output(net.add(net.activate(y, kHardSwish), y), "z");
  const auto before = quantized(prepared(finished(std::move(net))));
  const auto after = absorbed(before, {.merge_activations = true});
  EXPECT_THAT(node_types(after),
              ElementsAre("Requantize", "Conv", "HardSwish", "Add", "Requantize"));
  expect_equivalent(before, after, 0);
}

TEST(ToQuantizedTensors, LeavesFloatOperatorsBetweenRequantizes) {
  NetBuilder net("mixed", 3);
  const auto x = net.input("x", {1, 4, 6, 6});
  const auto y = net.lrn(net.conv(x, {.out = 4}), {.size = 3});
  const auto slope = net.parameter("slope", {4, 1, 1}, 0.05, 0.25);
  net.output(net.conv(net.append(PRelu{}, {y, slope}, "PRelu"), {.out = 4}), "z");
  const auto before = quantized(prepared(finished(std::move(net))));
  const auto after = absorbed(before);
  // The LRN has no weights and is taken in with its neighbours' scales if both sides are rounded;
  // the PReLU's slopes are floats.
  EXPECT_THAT(node_types(after), ElementsAre("Requantize", "Conv", "Requantize", "LRN", "PRelu",
                                             "Requantize", "Conv", "Requantize"));
  expect_equivalent(before, after, 0);
}

TEST(ToQuantizedTensors, ReachesALayerBehindMoves) {
  // As other programs write it: no rounding between what moves values and the layer.
  NetBuilder net("moves", 3);
  const auto x = net.input("x", {2, 4, 3, 3});
  const auto y = net.transpose(net.conv(x, {.out = 4}), {0, 2, 3, 1});
  net.output(net.reshape(net.linear(net.reshape(y, {-1, 36}), 5), {5, -1}), "z");
  auto before = quantized(prepared(finished(std::move(net))));
  for (auto& node : before.nodes) {
    if (!std::holds_alternative<Gemm>(node.op)) continue;
    // Around the Gemm: takes its input from the move, gives its result to the next.
    const auto real = node.inputs[0];
    const auto stored = maker_of(before, real).inputs[0];
    node.inputs[0] = maker_of(before, stored).inputs[0];
  }
  const auto after = absorbed(before);
  for (const auto& node : after.nodes) {
    if (std::holds_alternative<Gemm>(node.op)) {
      EXPECT_EQ(after.tensor(node.inputs[0]).dtype, DType::u8);
    }
  }
  EXPECT_EQ(count_of(node_types(after), "Requantize"), 2U);
  expect_equivalent(before, after, 0);
}

TEST(ToQuantizedTensors, LeavesAFloatNetworkAlone) {
  const auto before = one_conv(kRelu);
  EXPECT_EQ(first_difference(before, absorbed(before, {.merge_activations = true})), std::nullopt);
}

TEST(ToQuantizedTensors, LeavesNumbersAloneOnWhoseMeaningReadersDiffer) {
  auto before = quantized(one_conv(kRelu));
  auto& last = before.nodes.back();  // the output's DequantizeLinear
  last.inputs[1] = before.add_tensor({.name = "other_scale",
                                      .dtype = DType::f32,
                                      .shape = Shape{},
                                      .data = TensorData::copy(std::vector<float>{0.5F})});
  const auto after = absorbed(before);
  EXPECT_EQ(count_of(node_types(after), "DequantizeLinear"), 1U);
  EXPECT_EQ(count_of(node_types(after), "QuantizeLinear"), 1U);
  expect_equivalent(before, after, 0);
}

TEST(ToQuantizedTensors, WholeNetworksComputeExactlyTheSame) {
  for (const auto* name : {"mobilenet_v3_small", "shufflenet_v2_x0_5", "deit_tiny"}) {
    if (kSanitized && std::string(name) != "mobilenet_v3_small") continue;
    const auto exact =
        prepared(build_zoo_network(name, {.width = 0.25, .classes = 10, .image = 32}).value());
    const auto before = quantized(exact);
    expect_equivalent(before, absorbed(before), 0);
    expect_equivalent(before, absorbed(reimported(before)), 1e-6);
  }
}

TEST(ToQuantizedTensors, MergingActivationsLosesNothing) {
  const auto exact = prepared(
      build_zoo_network("mobilenet_v3_small", {.width = 0.25, .classes = 10, .image = 32}).value());
  const auto before = quantized(exact);
  const auto merged = absorbed(before, {.merge_activations = true});
  EXPECT_EQ(count_of(node_types(merged), "HardSwish"), 0U);
  EXPECT_EQ(count_of(node_types(merged), "HardSigmoid"), 0U);
  EXPECT_GT(signal_to_noise(exact, merged), signal_to_noise(exact, before) - 1);
}

TEST(ToQuantizedTensors, FindsTheOperatorsOfQuantizedTfliteModelsAgain) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  for (const auto* file : {"mlperftiny_ic_resnet8_int8", "mlperftiny_kws_dscnn_int8",
                           "mlperftiny_ad01_int8", "tflm_person_detect_int8"}) {
    const auto path = *data / "models" / "tflite" / (std::string(file) + ".tflite");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << path;
    auto tflite = import_model(path).value().graph;
    ASSERT_TRUE(simplify(tflite));
    const auto onnx = reimported(tflite);
    const auto after = absorbed(onnx);
    const auto types = node_types(after);
    EXPECT_EQ(count_of(types, "DequantizeLinear"), 0U) << file;
    EXPECT_LE(count_of(types, "Requantize"), 4U) << file;
    for (const auto& node : after.nodes) {
      if (std::holds_alternative<Conv>(node.op) || std::holds_alternative<Gemm>(node.op)) {
        EXPECT_EQ(after.tensor(node.inputs[0]).dtype, DType::i8) << file << " " << describe(node);
      }
    }
    if (kSanitized) continue;
    expect_same_results(onnx, after, 0);
  }
}

}  // namespace
}  // namespace fleetfit::graph
