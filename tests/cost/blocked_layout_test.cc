#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleetfit/cost/features.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/net_builder.h"

// What is expected is what profiles of ONNX Runtime 1.30 show of such networks.
namespace fleetfit::cost {
namespace {

using namespace graph;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

constexpr std::int64_t kPixels = 8 * 8;

std::vector<Kernel> laid_out(NetBuilder& net, TensorId output,
                             std::string_view rules = "onnxruntime") {
  net.output(output, "y");
  const auto graph = std::move(net).finish().value();
  return deduce_kernels(graph, KernelRules::builtin(rules).value()).value().kernels;
}

std::vector<bool> outside(const std::vector<Kernel>& kernels) {
  std::vector<bool> all;
  for (const auto& kernel : kernels) all.push_back(kernel.outside_blocks);
  return all;
}

std::vector<std::int64_t> reordered(const std::vector<Kernel>& kernels) {
  std::vector<std::int64_t> all;
  for (const auto& kernel : kernels) all.push_back(kernel.reordered_size);
  return all;
}

TEST(BlockedLayout, HoldsConvolutionsWhoseInputsComeInFours) {
  NetBuilder net("net", 1);
  auto x = net.conv(net.input("x", {1, 3, 8, 8}), {.out = 20, .kernel = 3});  // reads it as it is
  x = net.conv(x, {.out = 18});
  x = net.conv(x, {.out = 32});  // 18 are no fours
  x = net.conv(x, {.out = 16});
  const auto kernels = laid_out(net, x);
  EXPECT_THAT(outside(kernels), ElementsAre(false, false, true, false));
  EXPECT_THAT(reordered(kernels), ElementsAre(0, 0, 18 * kPixels, 32 * kPixels));
}

TEST(BlockedLayout, HoldsGroupsOfWholeBlocksAndDepthwiseConvolutions) {
  const auto is_outside = [](std::int64_t channels, std::int64_t groups) {
    NetBuilder net("net", 1);
    const auto x = net.input("x", {1, channels, 8, 8});
    return laid_out(net, net.conv(x, {.out = channels, .kernel = 3, .groups = groups}))
        .at(0)
        .outside_blocks;
  };
  EXPECT_FALSE(is_outside(32, 2));
  EXPECT_TRUE(is_outside(32, 4));
  EXPECT_FALSE(is_outside(20, 20));
  EXPECT_TRUE(is_outside(18, 18));
}

TEST(BlockedLayout, ChangesATensorOnceForAllThatReadIt) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 3, 8, 8}), {.out = 18});
  const auto a = net.conv(x, {.out = 8});
  const auto b = net.conv(x, {.out = 8});
  EXPECT_THAT(reordered(laid_out(net, net.concat({a, b}))), ElementsAre(0, 18 * kPixels, 0, 0));
}

TEST(BlockedLayout, HoldsPoolingsOfWholeBlocks) {
  const auto kernels_of = [](std::int64_t channels) {
    NetBuilder net("net", 1);
    const auto x = net.conv(net.input("x", {1, 3, 8, 8}), {.out = channels});
    return laid_out(net, net.max_pool(x, {.kernel = 2}));
  };
  EXPECT_THAT(reordered(kernels_of(32)), ElementsAre(0, 0));
  EXPECT_THAT(reordered(kernels_of(20)), ElementsAre(0, 20 * kPixels));
}

TEST(BlockedLayout, IsFollowedByWhatReadsNothingElse) {
  NetBuilder net("net", 1);
  const auto input = net.input("x", {1, 16, 8, 8});
  const auto a = net.activate(net.conv(input, {.out = 16}), kRelu);
  const auto b = net.max_pool(a, {.kernel = 3, .stride = 1, .pad = 1});
  const auto both = net.mul(a, b);
  const auto with_constant = net.scale(both, 2);
  const auto kernels = laid_out(net, with_constant);
  EXPECT_THAT(outside(kernels), ElementsAre(false, false, false, true));
  EXPECT_THAT(reordered(kernels), ElementsAre(16 * kPixels, 0, 0, 16 * kPixels));
}

TEST(BlockedLayout, IsLeftForAnActivationAfterASumThatOnlyConvolutionsAloneCompute) {
  const auto kernels_of = [](const Activation& activation) {
    NetBuilder net("net", 1);
    const auto a = net.conv(net.input("x", {1, 3, 8, 8}), {.out = 16});
    const auto b = net.conv(a, {.out = 16});
    return laid_out(net, net.conv(net.activate(net.add(b, a), activation), {.out = 16}));
  };
  EXPECT_THAT(reordered(kernels_of(kRelu)), ElementsAre(0, 0, 0));
  EXPECT_THAT(reordered(kernels_of(kRelu6)), ElementsAre(0, 0, 16 * kPixels, 16 * kPixels));
}

TEST(BlockedLayout, IsOfFrameworksThatHaveBlocksAlone) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 18, 8, 8}), {.out = 18});
  EXPECT_THAT(laid_out(net, x, "engine"), Each(Field(&Kernel::outside_blocks, false)));
}

TEST(BlockedLayout, GivesFeaturesOfWorkOutsideAndOfConversions) {
  NetBuilder net("net", 1);
  auto x = net.conv(net.input("x", {1, 3, 8, 8}), {.out = 18});
  net.output(net.conv(x, {.out = 12, .kernel = 3, .groups = 2}), "y");
  const auto graph = std::move(net).finish().value();
  const auto plan = deduce_kernels(graph, KernelRules::builtin("onnxruntime").value()).value();
  const auto features = features_of(graph, plan.kernels).value();
  const auto value = [&](std::size_t kernel, std::string_view name) {
    const auto& names = feature_names(features[kernel].kind);
    const auto found = std::ranges::find(names, name) - names.begin();
    return features[kernel].values.at(static_cast<std::size_t>(found));
  };
  EXPECT_EQ(value(0, "outside_flops"), 0);
  EXPECT_EQ(value(0, "reordered_size"), 0);
  EXPECT_EQ(value(1, "outside_flops"), 2.0 * kPixels * 12 * 9 * 9);
  EXPECT_EQ(value(1, "outside_patch_size"), 9.0 * kPixels * 18);
  EXPECT_EQ(value(1, "outside_groups"), 2);
  EXPECT_EQ(value(1, "reordered_size"), 18 * kPixels);
}

TEST(BlockedLayout, OfARuleFileIsChecked) {
  const auto message_of = [](std::string_view blocks) {
    const auto text =
        std::string(R"({"format": "fleetfit-kernel-rules", "version": 1, "name": "mine", )") +
        R"("blocks": )" + std::string(blocks) + "}";
    const auto rules = KernelRules::parse(text, "mine.json");
    return rules ? "" : rules.error().message;
  };
  EXPECT_EQ(message_of(R"({"channels": 8, "follow": ["Activation"]})"), "");
  EXPECT_THAT(message_of(R"({"channels": 0})"), HasSubstr("mine.json: blocks.channels"));
  EXPECT_THAT(message_of(R"({"follow": []})"), HasSubstr("channels"));
  EXPECT_THAT(message_of(R"({"channels": 8, "folow": []})"), HasSubstr("folow"));
}

}  // namespace
}  // namespace fleetfit::cost
