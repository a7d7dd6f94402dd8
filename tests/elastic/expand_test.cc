#include "fleetfit/elastic/expand.h"

#include <gtest/gtest.h>

#include <span>

#include "fleetfit/graph/export.h"
#include "fleetfit/graph/import.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"
#include "set_weights.h"

namespace fleetfit::elastic {
namespace {

using graph::NetBuilder;
using graph::TensorId;

graph::Graph zoo_network(std::string_view name, const graph::ZooOptions& options = {}) {
  return graph::build_zoo_network(name, options).value();
}

graph::Graph residual_chain(int blocks) {
  NetBuilder net("chain", 1);
  TensorId x = net.input("x", {1, 4, 2, 2});
  for (int i = 0; i < blocks; ++i)
    x = net.add(net.conv(net.activate(net.conv(x, {.out = 4}), graph::kRelu), {.out = 4}), x);
  net.output(x, "y");
  return std::move(net).finish().value();
}

/// "oss" and the spans of merged branches, for each block, those that are shrunk with a letter:
/// "oss233s".
std::vector<std::string> branches_of(const Supernet& supernet) {
  std::vector<std::string> texts;
  for (const auto& block : supernet.blocks) {
    std::string text;
    for (const auto& branch : block.branches) {
      if (branch.kind == BranchKind::merged) {
        text += std::to_string(branch.span) + (branch.share < 1 ? "s" : "");
      } else {
        text += to_string(branch.kind)[0];
      }
    }
    texts.push_back(text);
  }
  return texts;
}

TEST(Expand, GivesTheBlocksOfResnet20ShrunkAndMergedBranches) {
  const auto supernet = expand(zoo_network("resnet20")).value();
  // Stem, three blocks in each of three stages, classifier.
  EXPECT_EQ(branches_of(supernet),
            (std::vector<std::string>{"o", "oss233s", "oss233s", "oss233s", "oss233s", "oss233s",
                                      "oss233s", "oss233s", "oss2", "oss", "o"}));
  // f(n) = 3 f(n-1) + f(n-2) + 2 f(n-3) ways through the last n blocks: 1, 3, 10, 35, 121, …
  EXPECT_EQ(SubnetSpace({supernet}).size().exact(), 59'683U);
}

TEST(Expand, ShrinksWhatStandsForMostBlocks) {
  const auto supernet =
      expand(zoo_network("resnet20"), {.merge = 1, .shrink = {}, .merge_shrink = 0.25}).value();
  const auto& branches = supernet.blocks[1].branches;
  ASSERT_EQ(branches_of(supernet)[1], "o22s");
  EXPECT_EQ(branches[2].share, 0.25);
  // Sixteen channels between the two convolutions become four.
  EXPECT_EQ(operand(branches[1].graph, 0, 1).size(), 16U * 16 * 9);
  EXPECT_EQ(operand(branches[2].graph, 0, 1).size(), 4U * 16 * 9);
  const auto none = expand(zoo_network("resnet20"), {.merge_shrink = 1}).value();
  EXPECT_EQ(SubnetSpace({none}).size().exact(), 50'951U);
}

TEST(Expand, ShrinksByTheSharesThatAreAsked) {
  const auto supernet =
      expand(zoo_network("resnet20"), {.merge = 0, .shrink = {0.25, 0.75, 0.5}}).value();
  const auto& branches = supernet.blocks[4].branches;  // 16 to 32 channels
  ASSERT_EQ(branches.size(), 4U);
  const std::vector<double> shares{1, 0.75, 0.5, 0.25};
  const std::vector<std::int64_t> inner{32, 24, 16, 8};
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const auto& graph = branches[i].graph;
    EXPECT_EQ(branches[i].share, shares[i]);
    EXPECT_EQ(graph.tensor(graph.nodes[0].inputs[1]).shape->front(), inner[i]);
  }
}

TEST(Expand, OffersAShareOnceIfRoundingMakesTwoOne) {
  // Of 16 channels, 0.25 and 0.3 both leave 4.
  const auto supernet = expand(zoo_network("resnet8"), {.merge = 0, .shrink = {0.25, 0.3}}).value();
  EXPECT_EQ(branches_of(supernet)[1], "os");
}

TEST(Expand, TakesModelsAsTheirFilesHaveThem) {
  const auto text = graph::export_onnx(zoo_network("resnet20")).value();
  const auto file = graph::import_onnx(std::as_bytes(std::span(text)), {}).value();
  const auto supernet = expand(file.graph).value();
  const SubnetSpace space({supernet});
  EXPECT_EQ(space.size().exact(), 59'683U);
  auto subnet = space.lower(space.parse("s2-m2s-s1-m1-o-o").value()).value();
  ASSERT_TRUE(graph::bind_dimensions(subnet, {{"N", 4}}));
  EXPECT_EQ(subnet.tensor(subnet.outputs[0]).shape, (graph::Shape{4, 10}));
}

TEST(Expand, SharesTheOriginalsWeights) {
  const auto model = zoo_network("resnet8");
  const auto supernet = expand(model).value();
  EXPECT_EQ(operand(supernet.blocks[0].branches[0].graph, 0, 1), operand(model, 0, 1));
}

TEST(Expand, StartsFromRandomWeightsIfAsked) {
  const auto model = zoo_network("resnet8");
  const auto taken = expand(model).value();
  const auto random = expand(model, {.start = BranchStart::random, .seed = 3}).value();
  const auto& drawn = random.blocks[1].branches[1].graph;
  EXPECT_NE(operand(drawn, 0, 1), operand(taken.blocks[1].branches[1].graph, 0, 1));
  EXPECT_EQ(operand(drawn, 1, 1), std::vector<float>(8, 1));  // scales of the batch norm
  EXPECT_EQ(operand(drawn, 1, 3), std::vector<float>(8, 0));  // its means
  EXPECT_EQ(operand(random.blocks[1].branches[0].graph, 0, 1),
            operand(taken.blocks[1].branches[0].graph, 0, 1));
  const auto other = expand(model, {.start = BranchStart::random, .seed = 4}).value();
  EXPECT_NE(operand(drawn, 0, 1), operand(other.blocks[1].branches[1].graph, 0, 1));
}

TEST(Expand, SaysWhichGranularityWouldHelp) {
  NetBuilder net("pair", 1);
  TensorId x = net.input("x", {1, 8, 8, 8});
  for (int i = 0; i < 2; ++i) x = net.activate(net.conv(x, {.out = 16, .kernel = 3}), graph::kRelu);
  net.output(net.linear(net.flatten(x), 10), "y");
  const auto model = std::move(net).finish().value();
  // 1152 + 2304 of 13706 parameters.
  EXPECT_EQ(expand(model).error().message,
            "the model pair cannot be made elastic: of its 3 blocks none repeats and none has "
            "inner channels that can be left out; a granularity of 0.26 would allow larger blocks "
            "that have");
  EXPECT_TRUE(expand(model, {.granularity = 0.26}));
}

TEST(Expand, SaysThatNothingRepeats) {
  NetBuilder net("tiny", 1);
  net.output(net.conv(net.input("x", {1, 3, 8, 8}), {.out = 8}), "y");
  const auto message = expand(std::move(net).finish().value()).error().message;
  EXPECT_EQ(message,
            "the model tiny cannot be made elastic: of its 1 blocks none repeats and none has "
            "inner channels that can be left out");
}

TEST(Expand, RefusesMoreBlocksThanASpaceHolds) {
  EXPECT_TRUE(expand(residual_chain(256), {.merge = 0}));
  const auto refused = expand(residual_chain(257), {.merge = 0});
  EXPECT_EQ(refused.error().message, "257 blocks have a choice, a space holds 256");
}

TEST(Expand, NamesOptionsThatAreOutOfRange) {
  const auto model = zoo_network("resnet8");
  EXPECT_EQ(expand(model, {.granularity = 0}).error().message, "granularity 0: not within 0 and 1");
  EXPECT_EQ(expand(model, {.shrink = {1.5}}).error().message,
            "share 1.5 of channels: not between 0 and 1");
  EXPECT_EQ(expand(model, {.merge_shrink = 0}).error().message,
            "share 0 of the channels of merged branches: not within 0 and 1");
  EXPECT_EQ(expand(model, {.merge = 0, .shrink = {}}).error().message,
            "neither merged nor shrunk branches are asked for");
}

}  // namespace
}  // namespace fleetfit::elastic
