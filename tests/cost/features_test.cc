#include "fleetfit/cost/features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::cost {
namespace {

using namespace graph;
using testing::HasSubstr;

Graph finished(NetBuilder& net, TensorId output) {
  net.output(output, "y");
  return std::move(net).finish().value();
}

double feature(const KernelFeatures& features, std::string_view name) {
  const auto& names = feature_names(features.kind);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    ADD_FAILURE() << features.kind << " has no feature " << name;
    return -1;
  }
  return features.values.at(static_cast<std::size_t>(found - names.begin()));
}

TEST(Features, OfEveryKindBeginWithTheGenericOnes) {
  const auto& generic = generic_feature_names();
  EXPECT_EQ(generic.front(), "flops");
  for (const auto kind : kernel_kinds()) {
    const auto& names = feature_names(kind);
    ASSERT_GE(names.size(), generic.size()) << kind;
    EXPECT_TRUE(std::equal(generic.begin(), generic.end(), names.begin())) << kind;
    const std::set<std::string> different(names.begin(), names.end());
    EXPECT_EQ(different.size(), names.size()) << kind;
  }
  EXPECT_EQ(feature_names("no such kind"), feature_names("other"));
}

TEST(Features, OfAConvolutionWithWhatIsFusedIntoIt) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {2, 3, 9, 9});
  const auto other = net.input("other", {2, 20, 5, 5});
  const auto conv =
      net.conv(x, {.out = 20, .kernel = 3, .stride = 2, .bias = true});  // 2 x 20 x 5 x 5
  const auto graph = finished(net, net.activate(net.add(conv, other), kRelu));
  const auto features = features_of(graph, Kernel{"conv2d", {0, 1, 2}}).value();
  const double out = 2 * 20 * 5 * 5;
  EXPECT_EQ(feature(features, "flops"), 2 * out * 3 * 3 * 3);
  EXPECT_EQ(feature(features, "input_size"), 2 * 3 * 9 * 9 + out);
  EXPECT_EQ(feature(features, "output_size"), out);
  EXPECT_EQ(feature(features, "weight_size"), 20 * 3 * 3 * 3 + 20);
  EXPECT_EQ(feature(features, "weight_bytes"), 4 * (20 * 3 * 3 * 3 + 20));
  EXPECT_EQ(feature(features, "fused_operand_bytes"), 4 * out);
  EXPECT_EQ(feature(features, "fused_size"), 2 * out);
  EXPECT_EQ(feature(features, "cheap_activation_size"), out);
  EXPECT_EQ(feature(features, "costly_activation_size"), 0);
  EXPECT_EQ(feature(features, "input_height"), 9);
  EXPECT_EQ(feature(features, "input_channels"), 3);
  EXPECT_EQ(feature(features, "output_width"), 5);
  EXPECT_EQ(feature(features, "output_channels"), 20);
  EXPECT_EQ(feature(features, "stride"), 2);
  EXPECT_EQ(feature(features, "kernel_height"), 3);
  EXPECT_EQ(feature(features, "depth"), 27);
  // 3 channels fill 16 lanes, 20 fill 32.
  EXPECT_EQ(feature(features, "padded_flops"), 2.0 * 2 * 5 * 5 * 9 * 16 * 32);
  EXPECT_EQ(feature(features, "filled_taps"), 2.0 * 5 * 5 * 9 * 2);
  EXPECT_EQ(feature(features, "filled_flops"), 2.0 * 2 * 5 * 5 * 9 * 3 * 32);
  EXPECT_EQ(feature(features, "patch_size"), 2 * 5 * 5 * 27);
  EXPECT_EQ(feature(features, "uneven_flops"), feature(features, "flops"));
  EXPECT_EQ(feature(features, "uneven_output_size"), out);
  EXPECT_EQ(feature(features, "winograd_flops"), feature(features, "flops"));
}

TEST(Features, CountWinogradsProductsInTiles) {
  NetBuilder net("net", 1);
  const auto graph = finished(net, net.conv(net.input("x", {1, 8, 6, 6}), {.out = 4, .kernel = 3}));
  const auto features = features_of(graph, Kernel{"winograd", {0}}).value();
  // 2 x 2 tiles of 4 x 4 pixels with 36 products for each pair of channels.
  EXPECT_EQ(feature(features, "winograd_flops"), 2.0 * 36 * 4 * 8 * 4);
}

TEST(Features, OfGroupsAndDepthwiseConvolutions) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 8, 4, 4}), {.out = 24, .kernel = 3, .groups = 4});
  const auto graph = finished(net, net.conv(x, {.out = 24, .kernel = 3, .groups = 24}));
  const auto grouped = features_of(graph, Kernel{"grouped_conv2d", {0}}).value();
  EXPECT_EQ(feature(grouped, "groups"), 4);
  EXPECT_EQ(feature(grouped, "output_channels_per_group"), 6);
  EXPECT_EQ(feature(grouped, "padded_flops"), 2.0 * 16 * 9 * 4 * 16 * 16);
  EXPECT_EQ(feature(grouped, "filled_taps"), 16.0 * 9 * 4);
  // Two channels of a group fill no vector, but eight are fours.
  EXPECT_EQ(feature(grouped, "unblocked_flops"), feature(grouped, "flops"));
  EXPECT_EQ(feature(grouped, "uneven_flops"), 0);
  const auto depthwise = features_of(graph, Kernel{"depthwise_conv2d", {1}}).value();
  EXPECT_EQ(feature(depthwise, "padded_flops"), 2.0 * 16 * 9 * 32);
}

/// A network of one grouped convolution in 8 bits, after a ReLU or not.
KernelFeatures features_in_bytes(bool after_relu, std::int64_t channels, std::int64_t out,
                                 std::int64_t groups) {
  NetBuilder net("net", 1);
  const auto x = net.conv_bn(net.input("x", {1, 8, 4, 4}), {.out = channels},
                             after_relu ? kRelu : Activation{});
  const auto graph = finished(net, net.conv(x, {.out = out, .kernel = 3, .groups = groups}));
  const auto prepared = prepare_for_quantization(graph).value();
  const auto quantized = quantize(prepared, guessed_ranges(prepared)).value();
  const auto plan = deduce_kernels(quantized, KernelRules::builtin("engine").value()).value();
  for (const Kernel& kernel : plan.kernels)
    if (kernel.kind == "grouped_conv2d") return features_of(quantized, kernel).value();
  ADD_FAILURE() << "no grouped convolution";
  return {};
}

TEST(Features, KnowWhichGroupsOfBytesAreJoined) {
  const auto joined = [](const KernelFeatures& features) {
    return feature(features, "joined_flops") / feature(features, "flops");
  };
  EXPECT_EQ(joined(features_in_bytes(true, 32, 32, 4)), 1);
  EXPECT_EQ(joined(features_in_bytes(false, 48, 24, 4)), 2);  // 6 filters in a group
  EXPECT_EQ(joined(features_in_bytes(false, 72, 27, 3)), 3);  // one group is always fine
  // Kernels that take any number of filters want many inputs, and 0 stored as 0.
  EXPECT_EQ(joined(features_in_bytes(true, 96, 27, 3)), 1);
  EXPECT_EQ(joined(features_in_bytes(false, 96, 27, 3)), 3);
  EXPECT_EQ(joined(features_in_bytes(true, 24, 9, 3)), 3);
  const auto never = features_in_bytes(false, 76, 57, 19);
  EXPECT_EQ(joined(never), 0);
  EXPECT_EQ(feature(never, "unjoined_flops"), feature(never, "flops"));
  EXPECT_EQ(feature(never, "shifted_flops"), feature(never, "flops"));
  EXPECT_EQ(feature(features_in_bytes(true, 76, 57, 19), "shifted_flops"), 0);
}

TEST(Features, OfPoolingMeanPaddingAndConcatenation) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 4, 8, 8});
  const auto padded = net.pad(x, 1, 1, 1, 1);
  const auto pooled = net.max_pool(padded, {.kernel = 3, .stride = 2});  // 4 x 4
  const auto joined = net.concat({pooled, net.average_pool(x, {})});
  const auto graph = finished(net, net.global_average_pool(joined));
  const auto of = [&](std::string kind, std::string_view type) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (type_name(graph.nodes[i].op) == type)
        return features_of(graph, Kernel{std::move(kind), {static_cast<int>(i)}}).value();
    }
    return KernelFeatures{};
  };
  EXPECT_EQ(feature(of("padding", "Pad"), "padding_size"), 4 * (100 - 64));
  EXPECT_EQ(feature(of("pooling", "MaxPool"), "flops"), 4 * 16 * 9);
  EXPECT_EQ(feature(of("pooling", "MaxPool"), "output_pixels"), 16);
  EXPECT_EQ(feature(of("pooling", "MaxPool"), "averaged_flops"), 0);
  EXPECT_EQ(feature(of("pooling", "AveragePool"), "averaged_flops"),
            feature(of("pooling", "AveragePool"), "flops"));
  EXPECT_EQ(feature(of("pooling", "AveragePool"), "averaged_pixels"), 16);
  EXPECT_EQ(feature(of("concat", "Concat"), "operands"), 2);
  EXPECT_EQ(feature(of("concat", "Concat"), "output_channels"), 8);
  EXPECT_EQ(feature(of("mean", "GlobalAveragePool"), "kernel_height"), 4);
  EXPECT_EQ(feature(of("mean", "GlobalAveragePool"), "flops"), 8 * 16);
}

TEST(Features, OfADenseLayerCountTheBatch) {
  NetBuilder net("net", 1);
  const auto graph = finished(net, net.linear(net.input("x", {3, 40}), 10));
  const auto features = features_of(graph, Kernel{"fully_connected", {0}}).value();
  EXPECT_EQ(feature(features, "flops"), 2 * 3 * 40 * 10);
  EXPECT_EQ(feature(features, "rows"), 3);
  EXPECT_EQ(feature(features, "depth"), 40);
  EXPECT_EQ(feature(features, "padded_flops"), 2 * 3 * 40 * 16);
}

TEST(Features, TellExponentialsFromCheapActivations) {
  NetBuilder net("net", 1);
  const auto x = net.input("x", {1, 4, 4, 4});
  const auto graph = finished(net, net.activate(net.activate(x, kSilu), kHardSwish));
  // SiLU is written as a sigmoid and a product.
  const auto silu = features_of(graph, Kernel{"elementwise", {0, 1}}).value();
  EXPECT_EQ(feature(silu, "costly_activation_size"), 64);
  EXPECT_EQ(feature(silu, "operands"), 1);
}

TEST(Features, OfQuantizedKernelsCountBytesAsStored) {
  NetBuilder net("net", 1);
  const auto x = net.conv(net.input("x", {1, 8, 8, 8}), {.out = 16, .kernel = 3, .bias = true});
  const auto prepared = prepare_for_quantization(finished(net, net.activate(x, kRelu))).value();
  Ranges ranges;
  for (const auto id : tensors_to_observe(prepared)) ranges[id] = {0, 6};
  const auto graph = quantize(prepared, ranges).value();
  const auto rules = KernelRules::builtin("engine")->for_target("onednn").value();
  const auto plan = deduce_kernels(graph, rules).value();
  const auto conv = std::ranges::find(plan.kernels, "conv2d", &Kernel::kind);
  ASSERT_NE(conv, plan.kernels.end());
  const auto features = features_of(graph, *conv).value();
  EXPECT_EQ(feature(features, "flops"), 2.0 * 16 * 64 * 8 * 9);
  EXPECT_EQ(feature(features, "input_bytes"), 8 * 64);
  EXPECT_EQ(feature(features, "output_bytes"), 16 * 64);
  EXPECT_EQ(feature(features, "weight_bytes"), 16 * 8 * 9 + 4 * 16);
  EXPECT_EQ(feature(features, "element_bytes"), 1);
}

TEST(Features, OfWholeNetworksAreFiniteAndNotNegative) {
  for (const auto* name : {"mobilevit_xxs", "shufflenet_v2_x0_5", "densenet40_k12"}) {
    const auto graph = build_zoo_network(name).value();
    for (const auto& builtin : builtin_rules()) {
      const auto plan = deduce_kernels(graph, KernelRules::builtin(builtin.name).value()).value();
      const auto all = features_of(graph, plan.kernels);
      ASSERT_TRUE(all) << all.error().message;
      for (const auto& features : *all) {
        ASSERT_EQ(features.values.size(), feature_names(features.kind).size());
        for (const double value : features.values) {
          ASSERT_TRUE(std::isfinite(value) && value >= 0) << name << " " << features.kind;
        }
        EXPECT_GT(feature(features, "output_size"), 0) << name << " " << features.kind;
      }
    }
  }
}

TEST(Features, OfOneKernelAreThoseOfTheList) {
  const auto graph = build_zoo_network("resnet8").value();
  const auto plan = deduce_kernels(graph, KernelRules::builtin("engine").value()).value();
  const auto all = features_of(graph, plan.kernels).value();
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(all[i], features_of(graph, plan.kernels[i]).value());
}

TEST(Features, OfAnUnknownOperatorAreGenericAndNeedAShape) {
  NetBuilder net("net", 1);
  auto graph = finished(net, net.activate(net.input("x", {1, 8}), kRelu));
  graph.nodes[0].op = Unknown{.type = "Wobble", .reason = "no such operator is known"};
  const auto known = features_of(graph, Kernel{"other", {0}}).value();
  EXPECT_EQ(feature(known, "output_size"), 8);
  graph.tensor(graph.nodes[0].outputs[0]).shape.reset();
  const auto unknown = features_of(graph, Kernel{"other", {0}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("Wobble"));
  EXPECT_FALSE(features_of(graph, Kernel{"other", {7}}));
  EXPECT_FALSE(features_of(graph, Kernel{"other", {}}));
}

}  // namespace
}  // namespace fleetfit::cost
