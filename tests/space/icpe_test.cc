#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "fleetfit/cost/cost.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/export.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {
namespace {

using graph::Graph;

constexpr std::size_t kSamples = 500;

const Space& icpe() { return *find_space("icpe").value(); }

const Population& samples() {
  static const Population kDesigns = sample_designs(icpe(), {.count = kSamples}).value();
  return kDesigns;
}

/// A network of blocks that cost little, but for one.
std::string with_block(std::size_t number, const std::string& text) {
  std::string design = "k3-relu-8";
  for (std::size_t b = 1; b <= 9; ++b)
    design += b == number ? "/" + text : (b <= 5 ? "/pool-max-w1-relu-8" : "/pool-max-w1-relu-80");
  return design + "/relu-1200";
}

Graph lowered(const std::string& text) {
  const auto design = icpe().parse(text);
  EXPECT_TRUE(design) << design.error().message;
  return icpe().lower(*design).value();
}

std::vector<const graph::Node*> nodes_of_type(const Graph& graph, std::string_view type) {
  std::vector<const graph::Node*> nodes;
  for (const auto& node : graph.nodes) {
    if (graph::type_name(node.op) == type) nodes.push_back(&node);
  }
  return nodes;
}

const graph::Shape& output_shape(const Graph& graph, const graph::Node& node) {
  return *graph.tensor(node.outputs[0]).shape;
}

const graph::Conv& conv_of(const graph::Node& node) { return std::get<graph::Conv>(node.op); }

TEST(Icpe, TheNextActiveGeneIsTheFirstOneThatMeansSomething) {
  for (std::size_t i = 0; i < samples().size(); ++i) {
    std::size_t expected = samples().genes();
    for (std::size_t gene = expected; gene-- > 0;) {
      if (icpe().is_active(samples()[i], gene)) expected = gene;
      EXPECT_EQ(icpe().next_active(samples()[i], gene), expected) << gene;
    }
  }
}

TEST(Icpe, ReachesEveryChoice) {
  const auto many = sample_designs(icpe(), {.count = 6000}).value();
  std::vector<std::set<Choice>> seen(icpe().genes().size());
  for (std::size_t i = 0; i < many.size(); ++i) {
    for (std::size_t gene = 0; gene < seen.size(); ++gene) {
      if (icpe().is_active(many[i], gene)) seen[gene].insert(many[i][gene]);
    }
  }
  for (std::size_t gene = 0; gene < seen.size(); ++gene) {
    const auto& [name, choices, values, before, column] = icpe().genes()[gene];
    const auto block = (gene - 3) / 18;
    const bool halves = block % 2 == 1;  // where no shortcut is possible
    if (name.ends_with("shortcut") && halves) {
      EXPECT_TRUE(seen[gene].empty()) << name;
      continue;
    }
    // Numbers of channels that are no multiple of 8 are rarer: 6000 draws leave some out.
    const auto wanted = choices.size() < 100 ? choices.size() : choices.size() * 8 / 10;
    EXPECT_GE(seen[gene].size(), wanted) << name;
  }
}

TEST(Icpe, KindsOfBlocksAreEquallyLikely) {
  std::map<Choice, int> counts;
  for (std::size_t i = 0; i < kSamples; ++i) ++counts[samples()[i][3]];
  // 500 draws of 5 kinds: 100 each with a standard deviation of 9.
  for (Choice kind = 0; kind < 5; ++kind) EXPECT_NEAR(counts[kind], 100, 36) << kind;
}

TEST(Icpe, EverySampleIsAValidNetworkOfAThousandClasses) {
  for (std::size_t i = 0; i < kSamples; ++i) {
    auto graph = icpe().lower(samples()[i]);
    ASSERT_TRUE(graph) << icpe().format(samples()[i]) << ": " << graph.error().message;
    ASSERT_TRUE(graph::infer_shapes(*graph));
    ASSERT_TRUE(graph::validate(*graph));
    EXPECT_EQ(*graph->tensor(graph->outputs[0]).shape, (graph::Shape{1, 1000}));
  }
}

TEST(Icpe, TextsReadBack) {
  std::set<std::string> texts;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto text = icpe().format(samples()[i]);
    EXPECT_TRUE(std::ranges::equal(icpe().parse(text).value(), samples()[i])) << text;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), kSamples);
}

TEST(Icpe, ErrorsNameBlockAndGene) {
  const auto bad = icpe().parse(with_block(3, "conv-k9-dense-plain-relu-8"));
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::invalid_input);
  EXPECT_TRUE(bad.error().message.starts_with("block 3 kernel: found 'k9")) << bad.error().message;
}

/// Counts what can follow, gene by gene; the last two genes of a block decide over nothing else.
DesignCount count_from(std::vector<Choice>& design, std::size_t gene, std::size_t end) {
  if (gene == end) return 1;
  if (!icpe().is_active(design, gene)) return count_from(design, gene + 1, end);
  const auto choices = icpe().genes()[gene].choices.size();
  if (gene + 2 >= end) return count_from(design, gene + 1, end) * DesignCount(choices);
  DesignCount count;
  for (std::size_t choice = 0; choice < choices; ++choice) {
    design[gene] = static_cast<Choice>(choice);
    count += count_from(design, gene + 1, end);
  }
  design[gene] = 0;
  return count;
}

TEST(Icpe, SizeIsTheNumberOfTexts) {
  constexpr std::size_t kBlockGenes = 18;
  std::vector<Choice> design(icpe().genes().size());
  DesignCount count = 3 * 4 * 73;
  for (std::size_t block = 0; block < 9; ++block)
    count *= count_from(design, 3 + block * kBlockGenes, 3 + (block + 1) * kBlockGenes);
  count *= DesignCount(4 * 601);
  EXPECT_EQ(icpe().size().decimal(), count.decimal());
}

TEST(Icpe, HalvesTheResolutionFiveTimes) {
  const auto graph = lowered(with_block(1, "pool-avg-w3-relu-8"));
  std::vector<std::int64_t> heights;
  for (const auto* pool : nodes_of_type(graph, "MaxPool"))
    heights.push_back(output_shape(graph, *pool)[2]);
  EXPECT_EQ(heights, (std::vector<std::int64_t>{56, 56, 28, 28, 14, 14, 7, 7}));
}

TEST(Icpe, GroupSizeIsTheNumberOfInputChannelsOfAGroup) {
  // The stem's 24 channels are 3 groups of 8; 40 outputs become 39 = 3 * 13.
  auto text = with_block(1, "conv-k3-grouped-g8-relu-40");
  text.replace(0, 9, "k3-relu-24");
  const auto graph = lowered(text);
  const auto& conv = *nodes_of_type(graph, "Conv")[1];
  EXPECT_EQ(conv_of(conv).groups, 3);
  EXPECT_EQ(*graph.tensor(conv.inputs[1]).shape, (graph::Shape{39, 8, 3, 3}));
}

TEST(Icpe, ChannelsAreRoundedForTheBlockThatFollows) {
  // 50 channels before a split into 4 become 48 (52 is as near; the smaller is taken), and a block
  // with a shortcut in between hands the demand on to the stem.
  auto text = with_block(2, "split-p4-relu-norm-add-mul-shuffle-silu-30");
  text.replace(0, 9, "k3-relu-50");
  const std::string first = "/pool-max-w1-relu-8";
  text.replace(text.find(first), first.size(), "/conv-k3-dense-skip-relu");
  const auto graph = lowered(text);
  EXPECT_EQ(output_shape(graph, *nodes_of_type(graph, "Conv")[0])[1], 48);
  EXPECT_EQ(output_shape(graph, *nodes_of_type(graph, "Split")[0])[1], 12);
  EXPECT_EQ(nodes_of_type(graph, "Transpose").size(), 1U);  // of the shuffle
}

TEST(Icpe, BottlenecksHaveTheirParts) {
  const auto graph = lowered(with_block(1, "mb-k5-e6-se-hsigmoid-skip-hswish"));
  const auto convs = nodes_of_type(graph, "Conv");
  EXPECT_EQ(output_shape(graph, *convs[1])[1], 48);  // 6 times the stem's 8
  EXPECT_EQ(conv_of(*convs[2]).groups, 48);
  EXPECT_EQ(conv_of(*convs[2]).window.kernel, (graph::Ints{5, 5}));
  EXPECT_EQ(output_shape(graph, *convs[3])[1],
            16);  // a quarter of 48, a multiple of 8 not below 90 %
  EXPECT_EQ(nodes_of_type(graph, "HardSigmoid").size(), 1U);
  EXPECT_EQ(nodes_of_type(graph, "Add").size(), 1U);
}

TEST(Icpe, NetworksAreAsLargeAsThoseOfPhones) {
  std::vector<double> macs;
  for (std::size_t i = 0; i < 100; ++i) {
    const auto cost = cost::count_cost(icpe().lower(samples()[i]).value()).value();
    macs.push_back(static_cast<double>(cost.total.flops) / 2e6);
  }
  std::ranges::sort(macs);
  EXPECT_GT(macs.front(), 10);
  EXPECT_GT(macs[50], 150);
  EXPECT_LT(macs[50], 1500);
  EXPECT_LT(macs.back(), 10'000);
}

TEST(Icpe, TheSameDesignIsTheSameFile) {
  const auto text = with_block(4, "sep-k7-silu-24");
  EXPECT_EQ(graph::export_onnx(lowered(text)).value(), graph::export_onnx(lowered(text)).value());
}

TEST(Icpe, TheEngineRunsEveryKindOfBlock) {
  for (const std::string block :
       {"conv-k7-grouped-g4-relu6-16", "conv-k5-dense-skip-silu", "sep-k3-skip-hswish",
        "mb-k3-e3-se-sigmoid-plain-relu6-24", "pool-avg-w3-silu-9",
        "split-p4-sigmoid-norm-add-mul-shuffle-relu-12",
        "split-p2-hswish-silu-inorder-hswish-12"}) {
    auto program = engine::Program::prepare(lowered(with_block(3, block)),
                                            {.choosing = engine::Choosing::fixed});
    ASSERT_TRUE(program) << block << ": " << program.error().message;
    EXPECT_TRUE(program->run());
  }
}

}  // namespace
}  // namespace fleetfit::space
