#include "fleetfit/cost/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::cost {
namespace {

using namespace graph;
using testing::ElementsAre;
using testing::HasSubstr;

Graph finished(NetBuilder& net, TensorId output) {
  net.output(output, "y");
  return std::move(net).finish().value();
}

KernelRules rules_for(std::string_view name, std::string_view target = "") {
  auto rules = KernelRules::builtin(name).value();
  return target.empty() ? rules : rules.for_target(target).value();
}

KernelPlan deduced(const Graph& graph, std::string_view rules, std::string_view target = "") {
  return deduce_kernels(graph, rules_for(rules, target)).value();
}

std::vector<std::string> kinds(const KernelPlan& plan) {
  std::vector<std::string> all;
  for (const auto& kernel : plan.kernels) all.push_back(kernel.kind);
  return all;
}

/// Types of the nodes of each kernel, joined by "+".
std::vector<std::string> kernels(const Graph& graph, const KernelPlan& plan) {
  std::vector<std::string> all;
  for (const auto& kernel : plan.kernels) {
    std::string text;
    for (const int index : kernel.nodes) {
      text += text.empty() ? "" : "+";
      text += type_name(graph.nodes[static_cast<std::size_t>(index)].op);
    }
    all.push_back(text);
  }
  return all;
}

Graph one_convolution(std::int64_t channels, std::int64_t image, const ConvSpec& spec) {
  NetBuilder net("net", 1);
  return finished(net, net.conv(net.input("x", {1, channels, image, image}), spec));
}

std::string chosen(const Graph& graph, std::string_view gpu) {
  return deduced(graph, "tflite-gpu", gpu).kernels.at(0).kind;
}

// --- Choice of a convolution

// Table 2 of the paper.
TEST(TfliteGpuRules, TakeWinogradWhereThePapersTableSaysSo) {
  struct Row {
    std::int64_t channels;
    std::int64_t image;
    const char* adreno;
    const char* mali;
  };
  for (const Row& row : {Row{64, 56, "conv2d", "winograd"}, Row{128, 28, "conv2d", "winograd"},
                         Row{256, 14, "conv2d", "conv2d"}}) {
    SCOPED_TRACE(row.channels);
    const auto graph = one_convolution(row.channels, row.image, {.out = row.channels, .kernel = 3});
    for (const auto* gpu : {"adreno640", "adreno616"}) EXPECT_EQ(chosen(graph, gpu), row.adreno);
    for (const auto* gpu : {"mali-g76", "powervr-ge8320", "apple"})
      EXPECT_EQ(chosen(graph, gpu), row.mali);
  }
}

TEST(TfliteGpuRules, TellFamiliesApartByDepthAndTiles) {
  // 32 slices of 4 channels, 8 x 8 = 64 tiles of 4 x 4 pixels: just enough for an older Adreno.
  const auto at_64_tiles = one_convolution(128, 32, {.out = 128, .kernel = 3});
  EXPECT_EQ(chosen(at_64_tiles, "adreno"), "winograd");
  EXPECT_EQ(chosen(at_64_tiles, "adreno640"), "conv2d");
  const auto below = one_convolution(128, 28, {.out = 128, .kernel = 3});
  EXPECT_EQ(chosen(below, "adreno"), "conv2d");
  // 128 tiles: 48 x 41 pixels give 12 x 11 = 132.
  EXPECT_EQ(chosen(one_convolution(128, 45, {.out = 128, .kernel = 3}), "adreno640"), "winograd");
  // 8 slices of output: AMD alone is content with so few.
  const auto shallow = one_convolution(64, 56, {.out = 32, .kernel = 3});
  EXPECT_EQ(chosen(shallow, "amd"), "winograd");
  EXPECT_EQ(chosen(shallow, "mali-g76"), "conv2d");
}

TEST(TfliteGpuRules, TakeWinogradForDense3x3OfStride1Only) {
  for (const auto& spec :
       {ConvSpec{.out = 64, .kernel = 5}, ConvSpec{.out = 64, .kernel = 3, .stride = 2},
        ConvSpec{.out = 64, .kernel = 3, .dilation = 2},
        ConvSpec{.out = 64, .kernel = 3, .kernel_w = 1}}) {
    EXPECT_EQ(chosen(one_convolution(64, 112, spec), "mali-g76"), "conv2d");
  }
}

TEST(TfliteGpuRules, TakeGroupedConvolutionsWhereGroupsAreWholeSlices) {
  // 4 groups of 8 channels.
  EXPECT_EQ(chosen(one_convolution(32, 8, {.out = 32, .kernel = 3, .groups = 4}), "mali-g76"),
            "grouped_conv2d");
  // 4 groups of 6: not a multiple of 4.
  EXPECT_EQ(chosen(one_convolution(24, 8, {.out = 24, .kernel = 3, .groups = 4}), "mali-g76"),
            "conv2d");
  EXPECT_EQ(chosen(one_convolution(32, 8, {.out = 32, .kernel = 3, .groups = 32}), "mali-g76"),
            "depthwise_conv2d");
}

// --- Fusion

TEST(TfliteGpuRules, FuseAChainOfElementwiseOperators) {
  NetBuilder net("net", 1);
  auto x = net.conv_bn(net.input("x", {1, 8, 8, 8}), {.out = 8, .kernel = 3}, kRelu);
  x = net.activate(net.scale(x, 2), kTanh);
  const auto graph = finished(net, net.max_pool(x, {}));
  const auto plan = deduced(graph, "tflite-gpu", "mali-g76");
  EXPECT_THAT(kernels(graph, plan),
              ElementsAre("Conv+BatchNormalization+Relu+Mul+Tanh", "MaxPool"));
  EXPECT_EQ(plan.before_fusion, 6);
}

TEST(TfliteGpuRules, FuseAnAdditionIntoTheLaterOfTwoConvolutions) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 8, 8, 8});
  const auto a = net.conv(x, {.out = 8});
  const auto b = net.conv(x, {.out = 8, .kernel = 3});
  const auto graph = finished(net, net.add(a, b));
  EXPECT_THAT(kernels(graph, deduced(graph, "tflite-gpu", "mali-g76")),
              ElementsAre("Conv", "Conv+Add"));
}

TEST(TfliteGpuRules, LeaveASubtractionWhoseSecondOperandIsNotReady) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 8, 8, 8});
  const auto a = net.conv(x, {.out = 8});
  const auto b = net.conv(x, {.out = 8, .kernel = 3});
  // The kernel of `a` runs before there is a `b`; and `b` is not the first operand.
  const auto graph = finished(net, net.sub(a, b));
  EXPECT_THAT(kernels(graph, deduced(graph, "tflite-gpu", "mali-g76")),
              ElementsAre("Conv", "Conv", "Sub"));
}

TEST(TfliteGpuRules, LeaveWhatIsReadTwiceOrIsAnOutput) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 8, 8, 8}), {.out = 8});
  const auto relu = net.activate(x, kRelu);
  const auto tanh = net.activate(x, kTanh);
  net.output(relu, "relu");
  const auto graph = finished(net, net.max_pool(tanh, {}));
  EXPECT_THAT(kernels(graph, deduced(graph, "tflite-gpu", "mali-g76")),
              ElementsAre("Conv", "Relu", "Tanh", "MaxPool"));
}

TEST(TfliteGpuRules, NearlyHalveTheKernelsOfARealNetwork) {
  const auto graph = build_zoo_network("resnet18").value();
  const auto plan = deduced(graph, "tflite-gpu", "mali-g76");
  // 20 convolutions and batch norms, 17 ReLUs, 8 additions, 2 poolings, flattening, 1 dense layer.
  EXPECT_EQ(plan.before_fusion, 20 + 20 + 17 + 8 + 2 + 1 + 1);
  // What is left: convolutions, poolings, flattening, the dense layer.
  EXPECT_EQ(plan.kernels.size(), 20U + 2 + 1 + 1);
  EXPECT_EQ(std::ranges::count(kinds(plan), "winograd"), 7);
  EXPECT_EQ(std::ranges::count(kinds(deduced(graph, "tflite-gpu", "adreno640")), "winograd"), 0);
}

// --- Other rules

TEST(PlainRules, RunAKernelForEachOperator) {
  NetBuilder net("net", 1);
  const auto x = net.conv_bn(net.input("x", {1, 8, 8, 8}), {.out = 8}, kRelu);
  const auto graph = finished(net, net.linear(net.flatten(x), 10));
  const auto plan = deduced(graph, "plain");
  EXPECT_THAT(kinds(plan),
              ElementsAre("conv2d", "normalization", "elementwise", "reshape", "fully_connected"));
  EXPECT_EQ(plan.before_fusion, 5);
}

TEST(EngineRules, AddInPlaceWithOneDnnAlone) {
  NetBuilder net("net", 1);
  const auto x = net.conv_bn(net.input("x", {1, 8, 8, 8}), {.out = 8}, kRelu);
  const auto y = net.max_pool(x, {.kernel = 3, .stride = 1, .pad = 1});
  const auto z = net.conv_bn(y, {.out = 8, .kernel = 3});
  const auto graph = finished(net, net.activate(net.add(z, x), kRelu));
  EXPECT_THAT(
      kernels(graph, deduced(graph, "engine", "onednn")),
      ElementsAre("Conv+BatchNormalization+Relu", "MaxPool", "Conv+BatchNormalization+Add+Relu"));
  EXPECT_THAT(kernels(graph, deduced(graph, "engine", "xnnpack")),
              ElementsAre("Conv+BatchNormalization+Relu", "MaxPool", "Conv+BatchNormalization",
                          "Add+Relu"));
}

TEST(EngineRules, DoNotAddToWhatTheConvolutionItselfReads) {
  NetBuilder net("net", 1);
  const auto x = net.max_pool(net.input("x", {1, 8, 8, 8}), {});
  const auto graph = finished(net, net.add(net.conv(x, {.out = 8, .kernel = 3}), x));
  EXPECT_THAT(kernels(graph, deduced(graph, "engine", "onednn")),
              ElementsAre("MaxPool", "Conv", "Add"));
}

TEST(EngineRules, DoNotAddToWhatIsStillNeeded) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 8, 8, 8}), {.out = 8});
  const auto sum = net.add(net.conv(x, {.out = 8, .kernel = 3}), x);
  const auto graph = finished(net, net.mul(sum, x));
  EXPECT_THAT(kernels(graph, deduced(graph, "engine", "onednn")),
              ElementsAre("Conv", "Conv", "Add", "Mul"));
}

TEST(EngineRules, ShuffleChannelsWhileJoiningAndSplitting) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 8, 8, 8});
  const auto joined = net.concat({net.max_pool(x, {}), net.average_pool(x, {})});
  const auto halves = net.split(net.channel_shuffle(joined, 2), {8, 8});
  const auto graph = finished(net, net.mul(halves[0], halves[1]));
  const auto plan = deduced(graph, "engine", "auto");
  EXPECT_THAT(kernels(graph, plan), ElementsAre("MaxPool", "AveragePool",
                                                "Transpose+Concat+Reshape+Reshape+Split", "Mul"));
  EXPECT_EQ(plan.kernels[2].kind, "transpose");
}

TEST(EngineRules, TakePackingAndUnpackingIntoKernelsOf8Bits) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 8, 8, 8}), {.out = 8, .kernel = 3});
  const auto prepared = prepare_for_quantization(finished(net, net.activate(x, kRelu))).value();
  Ranges ranges;
  for (const auto id : tensors_to_observe(prepared)) ranges[id] = {0, 6};
  const auto graph = quantize(prepared, ranges).value();
  EXPECT_THAT(
      kernels(graph, deduced(graph, "engine", "onednn")),
      ElementsAre("QuantizeLinear", "Conv+DequantizeLinear+QuantizeLinear", "DequantizeLinear"));
}

TEST(DeducedKernels, HoldEachNodeAtMostOnceAndAllThatWork) {
  const auto graph = build_zoo_network("mobilevit_xxs").value();
  for (const auto& builtin : builtin_rules()) {
    SCOPED_TRACE(builtin.name);
    const auto plan = deduced(graph, builtin.name);
    std::vector<int> seen(graph.nodes.size(), 0);
    for (const auto& kernel : plan.kernels) {
      for (const int index : kernel.nodes) ++seen[static_cast<std::size_t>(index)];
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto kind = plain_kind(graph, graph.nodes[i]);
      EXPECT_LE(seen[i], 1) << graph.nodes[i].name;
      if (kind == "conv2d" || kind == "matmul" || kind == "softmax" || kind == "fully_connected") {
        EXPECT_EQ(seen[i], 1) << graph.nodes[i].name;
      }
    }
  }
}

TEST(DeducedKernels, OfUnknownOperatorsAreOther) {
  NetBuilder net("net", 1);
  auto graph = finished(net, net.activate(net.input("x", {1, 8}), kRelu));
  graph.nodes[0].op = Unknown{.type = "Wobble", .reason = "no such operator is known"};
  EXPECT_THAT(kinds(deduced(graph, "engine", "auto")), ElementsAre("other"));
}

// --- Rule files

std::string refused(std::string_view text) {
  const auto rules = KernelRules::parse(text, "my.json");
  return rules ? "accepted" : rules.error().message;
}

TEST(KernelRules, AreRefusedWithThePlace) {
  EXPECT_THAT(refused("{"), HasSubstr("my.json"));
  EXPECT_THAT(refused(R"({"format": "other", "version": 1, "name": "x"})"),
              HasSubstr("its format is 'other'"));
  const auto rest = [](const std::string& fields) {
    return refused(R"({"format": "fleetfit-kernel-rules", "version": 1, "name": "x", )" + fields +
                   "}");
  };
  EXPECT_THAT(refused(R"({"format": "fleetfit-kernel-rules", "version": 9, "name": "x"})"),
              HasSubstr("its version is 9; this program reads up to 1"));
  EXPECT_THAT(rest(R"("fusion": [])"), HasSubstr("fusion"));
  EXPECT_THAT(rest(R"("prepare": ["fold"])"), HasSubstr("no pass 'fold'"));
  EXPECT_THAT(rest(R"("fuse": [{"types": ["Add"], "when": ["sunny"]}])"),
              HasSubstr("my.json: fuse[0].when[0]: \"sunny\" is none of inputs_ready"));
  EXPECT_THAT(rest(R"("fuse": [{}])"), HasSubstr("fuse[0]: names no types"));
  EXPECT_THAT(rest(R"("fuse": [{"types": ["Add"], "families": ["mali"]}])"),
              HasSubstr("no target is of the family 'mali'"));
  EXPECT_THAT(rest(R"("select": [{"kind": "conv2d", "when": {"weight": {"is": 3}}}])"),
              HasSubstr("there is no quantity 'weight'"));
  EXPECT_THAT(rest(R"("select": [{"kind": "conv9"}])"),
              HasSubstr("there is no kind of kernel 'conv9'"));
  EXPECT_THAT(rest(R"("select": [{"kind": "conv2d", "when": {"stride": {"multiple_of": 0}}}])"),
              HasSubstr("multiple_of"));
}

TEST(KernelRules, OfAUserAreFollowed) {
  const auto rules = KernelRules::parse(R"({
      "format": "fleetfit-kernel-rules", "version": 1, "name": "mine",
      "targets": {"big": "large", "little": "small"},
      "fuse": [{"types": ["Relu"], "into": ["Conv"], "families": ["large"]}],
      "select": [{"kind": "winograd", "of": ["conv2d"], "when": {"stride": {"at_most": 1}}}]})",
                                        "mine.json");
  ASSERT_TRUE(rules) << rules.error().message;
  NetBuilder net("net", 1);
  const auto graph =
      finished(net, net.activate(net.conv(net.input("x", {1, 4, 4, 4}), {.out = 4}), kRelu));
  EXPECT_THAT(kinds(*deduce_kernels(graph, *rules->for_target("big"))), ElementsAre("winograd"));
  EXPECT_THAT(kinds(*deduce_kernels(graph, *rules->for_target("little"))),
              ElementsAre("winograd", "elementwise"));
  EXPECT_THAT(rules->for_target("huge").error().message,
              "the kernel rules 'mine' know no 'huge'; they know big, little");
}

TEST(KernelRules, ThatDoNotExistAreListed) {
  EXPECT_EQ(KernelRules::builtin("tensorrt").error().message,
            "there are no kernel rules 'tensorrt'; there are tflite-gpu, engine, onnxruntime, "
            "plain");
}

}  // namespace
}  // namespace fleetfit::cost
