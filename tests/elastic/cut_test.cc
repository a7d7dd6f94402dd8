#include <gtest/gtest.h>

#include <algorithm>

#include "elastic/cut.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/net_builder.h"
#include "graph/zoo/families.h"

namespace fleetfit::elastic {
namespace {

using graph::Activation;
using graph::NetBuilder;
using graph::TensorId;

/// The operators of each segment, joined by blanks.
std::vector<std::string> segments_of(NetBuilder net) {
  const auto model = prepared(std::move(net).finish().value()).value();
  std::vector<std::string> texts;
  for (const auto& segment : find_segments(model)) {
    std::string text;
    for (std::size_t n = segment.first; n < segment.end; ++n) {
      if (!text.empty()) text += ' ';
      text += graph::type_name(model.nodes[n].op);
    }
    texts.push_back(text);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Segments, KeepLayersWithWhatRuntimesFuse) {
  NetBuilder net("plain", 1);
  TensorId x = net.input("x", {1, 3, 16, 16});
  x = net.conv_bn(x, {.out = 8, .kernel = 3}, graph::kRelu);
  x = net.max_pool(x, {});
  x = net.conv_bn(x, {.out = 8, .kernel = 3}, graph::kHardSwish);
  x = net.linear(net.flatten(net.global_average_pool(x)), 10);
  net.output(x, "y");
  EXPECT_EQ(segments_of(std::move(net)),
            (Texts{"Conv BatchNormalization Relu MaxPool", "Conv BatchNormalization HardSwish",
                   "GlobalAveragePool Flatten Gemm"}));
}

TEST(Segments, KeepActivationsThatAreWrittenOutWhole) {
  for (const Activation& activation : {graph::kSilu, graph::kGelu}) {
    NetBuilder net("written out", 1);
    TensorId x = net.input("x", {1, 3, 8, 8});
    for (int i = 0; i < 3; ++i)
      x = net.activate(net.conv(x, {.out = 8, .kernel = 3, .bias = true}), activation);
    net.output(x, "y");
    EXPECT_EQ(segments_of(std::move(net)).size(), 3U) << type_name(activation.kind);
  }
}

TEST(Segments, EndWhereAResidualBlockEnds) {
  NetBuilder net("residual", 1);
  TensorId x = net.input("x", {1, 8, 8, 8});
  for (int i = 0; i < 2; ++i) {
    TensorId y = net.conv_bn(x, {.out = 8, .kernel = 3}, graph::kRelu);
    y = net.conv_bn(y, {.out = 8, .kernel = 3});
    x = net.activate(net.add(y, x), graph::kRelu);
  }
  net.output(x, "y");
  const std::string block = "Conv BatchNormalization Relu Conv BatchNormalization Add Relu";
  EXPECT_EQ(segments_of(std::move(net)), (Texts{block, block}));
}

TEST(Segments, BeginWithTheNormOfAPreActivatedBlock) {
  NetBuilder net("pre-activated", 1);
  TensorId x = net.conv(net.input("x", {1, 8, 8, 8}), {.out = 8, .kernel = 3});
  for (int i = 0; i < 2; ++i) {
    const TensorId y = net.activate(net.batch_norm(x), graph::kRelu);
    x = net.add(net.conv(y, {.out = 8, .kernel = 3}), x);
  }
  net.output(x, "y");
  const std::string block = "BatchNormalization Relu Conv Add";
  EXPECT_EQ(segments_of(std::move(net)), (Texts{"Conv", block, block}));
}

TEST(Segments, HandOneTensorOnInDenseNetworks) {
  NetBuilder net("dense", 1);
  std::vector<TensorId> features{net.conv(net.input("x", {1, 3, 8, 8}), {.out = 8, .kernel = 3})};
  for (int i = 0; i < 3; ++i) {
    const TensorId x = features.size() == 1 ? features[0] : net.concat(features);
    features.push_back(net.conv(net.activate(net.batch_norm(x), graph::kRelu), {.out = 4}));
  }
  net.output(net.concat(features), "y");
  const std::string layer = "BatchNormalization Relu Conv Concat";
  EXPECT_EQ(segments_of(std::move(net)), (Texts{"Conv", layer, layer, layer}));
}

TEST(Segments, KeepASqueezeExciteWithItsLayer) {
  NetBuilder net("gated", 1);
  TensorId x = net.conv(net.input("x", {1, 8, 8, 8}), {.out = 8, .kernel = 3});
  TensorId gate = net.conv(net.global_average_pool(x), {.out = 4});
  gate = net.activate(net.conv(net.activate(gate, graph::kRelu), {.out = 8}), graph::kSigmoid);
  x = net.conv(net.mul(x, gate), {.out = 8});
  net.output(x, "y");
  EXPECT_EQ(segments_of(std::move(net)),
            (Texts{"Conv GlobalAveragePool Conv Relu Conv Sigmoid Mul", "Conv"}));
}

/// The names of the first nodes of the blocks are not told; their numbers of nodes are.
std::vector<std::size_t> nodes_of_blocks(NetBuilder net, double granularity) {
  std::vector<std::size_t> counts;
  const auto supernet = cut_into_blocks(std::move(net).finish().value(), granularity).value();
  for (const auto& block : supernet.blocks)
    counts.push_back(block.branches.front().graph.nodes.size());
  return counts;
}

NetBuilder convolutions(int count) {
  NetBuilder net("plain", 1);
  TensorId x = net.input("x", {1, 8, 8, 8});
  for (int i = 0; i < count; ++i)
    x = net.activate(net.conv(x, {.out = 8, .kernel = 3}), graph::kRelu);
  net.output(x, "y");
  return net;
}

TEST(Cut, JoinsPlainLayersSoThatTheyHaveChannelsInside) {
  EXPECT_EQ(nodes_of_blocks(convolutions(4), 0.5), (std::vector<std::size_t>{4, 4}));
}

TEST(Cut, JoinsNothingBeyondTheGranularity) {
  EXPECT_EQ(nodes_of_blocks(convolutions(4), 0.49), (std::vector<std::size_t>{2, 2, 2, 2}));
}

TEST(Cut, JoinsAnInvertedResidualWithoutSkip) {
  NetBuilder net("inverted", 1);
  TensorId x = net.input("x", {1, 8, 8, 8});
  for (int i = 0; i < 2; ++i) {
    x = net.conv_bn(x, {.out = 24}, graph::kRelu6);
    x = net.conv_bn(x, {.out = 24, .kernel = 3, .stride = 2, .groups = 24}, graph::kRelu6);
    x = net.conv_bn(x, {.out = 12});
  }
  net.output(x, "y");
  EXPECT_EQ(nodes_of_blocks(std::move(net), 0.7), (std::vector<std::size_t>{8, 8}));
}

TEST(Cut, JoinsTheHalvesOfAnEncoderLayer) {
  NetBuilder net("encoder", 1);
  TensorId x = net.input("x", {1, 5, 16});
  for (int i = 0; i < 3; ++i) x = graph::encoder_block(net, x, {.heads = 2, .hidden = 32});
  net.output(net.linear(net.layer_norm(x), 10), "y");
  const auto supernet = cut_into_blocks(std::move(net).finish().value(), 0.4).value();
  ASSERT_EQ(supernet.blocks.size(), 4U);
  for (std::size_t b = 0; b < 3; ++b) {
    const auto& layer = supernet.blocks[b].branches.front().graph;
    EXPECT_EQ(std::ranges::count_if(layer.nodes,
                                    [](const graph::Node& node) {
                                      return std::holds_alternative<graph::LayerNorm>(node.op);
                                    }),
              2);
  }
}

TEST(Cut, SaysWhenNothingCanBeCut) {
  NetBuilder net("tiny", 1);
  net.output(net.conv(net.input("x", {1, 3, 8, 8}), {.out = 8}), "y");
  EXPECT_EQ(cut_into_blocks(std::move(net).finish().value(), 0.1).error().message,
            "the model tiny cannot be cut: no tensor in it is one through which everything flows");
}

}  // namespace
}  // namespace fleetfit::elastic
