#include <gmock/gmock.h>

#include <algorithm>

#include "fleetfit/cost/cost.h"
#include "fleetfit/engine/program.h"
#include "fleetfit/graph/quantize.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Space& known(std::string_view name) { return *find_space(name).value(); }

graph::Graph network(std::string_view space, std::string_view design) {
  const auto choices = known(space).parse(design);
  EXPECT_TRUE(choices) << choices.error().message;
  auto graph = known(space).lower(*choices);
  EXPECT_TRUE(graph) << design << ": " << graph.error().message;
  return *std::move(graph);
}

std::int64_t flops(const graph::Graph& graph) { return cost::count_cost(graph)->total.flops; }

TEST(PolicySpace, IsFoundByNameAndIsTheSameEachTime) {
  EXPECT_EQ(known("fbnet+precision").name(), "fbnet+precision");
  EXPECT_EQ(&known("icpe+precision+pruning"), &known("icpe+precision+pruning"));
  EXPECT_EQ(known("fbnet+pruning").version(), known("fbnet").version());
  EXPECT_EQ(spaces().size(), 7);
}

TEST(PolicySpace, RefusesPoliciesThatThereAreNot) {
  for (const auto* name : {"fbnet+", "fbnet+speed", "fbnet+pruning+precision",
                           "fbnet+precision+precision", "elsewhere+precision", "+precision"}) {
    const auto found = find_space(name);
    ASSERT_FALSE(found) << name;
    EXPECT_THAT(found.error().message, HasSubstr("+precision+pruning behind it"));
  }
}

TEST(PolicySpace, HasTheArchitecturesTimesThePolicies) {
  EXPECT_EQ(known("nasbench201+precision").size().decimal(), std::to_string(15625 * 2));
  EXPECT_EQ(known("nasbench201+pruning").size().decimal(), std::to_string(15625 * 27));
  EXPECT_EQ(known("nasbench201+precision+pruning").size().decimal(), std::to_string(15625 * 54));
}

TEST(PolicySpace, WritesPoliciesBehindTheArchitecture) {
  const auto& space = known("nasbench201+precision+pruning");
  const auto design = *space.parse("421233+int8+w100-w75-w50");
  EXPECT_EQ(space.format(design), "421233+int8+w100-w75-w50");
  EXPECT_THAT(space.columns(), ElementsAre("ops"));
  EXPECT_THAT(space.parse("421233+int4+w100-w75-w50").error().message, HasSubstr("precision"));
  EXPECT_THAT(space.parse("421233").error().message, HasSubstr("precision: the text ends"));
}

TEST(PolicySpace, GivesPoliciesColumnsOfTheirOwnWhereTheArchitectureHasSeveral) {
  const auto& space = known("ofa-mbv3+precision+pruning");
  EXPECT_THAT(space.columns(), ElementsAre("ks", "e", "d", "r", "precision", "pruning"));
  const auto designs = *sample_designs(space, {.count = 1});
  const auto design = designs[0];
  const auto cells = space.cells(design);
  EXPECT_EQ(cells[4], space.genes()[space.genes().size() - 4].choices[design[design.size() - 4]]);
  const std::vector<std::string_view> views(cells.begin(), cells.end());
  EXPECT_TRUE(std::ranges::equal(space.parse_cells(views).value(), design));
}

TEST(PolicySpace, LowersToTheArchitectureItselfInFloatAndWhole) {
  const auto whole = network("nasbench201+precision+pruning", "421233+fp32+w100-w100-w100");
  const auto plain = network("nasbench201", "421233");
  EXPECT_EQ(whole.nodes.size(), plain.nodes.size());
  EXPECT_EQ(flops(whole), flops(plain));
  EXPECT_FALSE(graph::is_quantized(whole));
}

TEST(PolicySpace, LowersToNarrowerAndQuantizedNetworks) {
  const auto half = network("nasbench201+precision+pruning", "333333+fp32+w50-w50-w50");
  const auto plain = network("nasbench201", "333333");
  // Inner convolutions have half of both their inputs and outputs.
  EXPECT_NEAR(static_cast<double>(flops(half)) / static_cast<double>(flops(plain)), 0.25, 0.02);
  EXPECT_TRUE(graph::is_quantized(network("nasbench201+precision", "333333+int8")));
  EXPECT_LT(flops(network("nasbench201+pruning", "333333+w100-w100-w50")), flops(plain));
}

TEST(PolicySpace, SamplesOfAllSpacesLowerAndReadBack) {
  for (const auto& base : spaces()) {
    const auto& space = known(base->name() + "+precision+pruning");
    const auto designs = sample_designs(space, {.count = 2}).value();
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto text = space.format(designs[i]);
      EXPECT_TRUE(std::ranges::equal(space.parse(text).value(), designs[i])) << text;
      EXPECT_EQ(space.active_slots(designs[i]), space.Space::active_slots(designs[i]));
      auto graph = space.lower(designs[i]);
      ASSERT_TRUE(graph) << space.name() << " " << text << ": " << graph.error().message;
      ASSERT_TRUE(graph::infer_shapes(*graph)) << text;
      ASSERT_TRUE(graph::validate(*graph)) << text;
    }
  }
}

TEST(PolicySpace, EncodesPoliciesAsItDoesOperators) {
  const auto& space = known("nasbench201+precision+pruning");
  const auto encoding = *space.find_encoding("one-hot");
  const auto& features = space.encodings()[encoding].features;
  EXPECT_EQ(features.size(), 6 * 5 + 2 + 3 * 3 + 1);
  const auto design = *space.parse("000000+int8+w100-w75-w50");
  std::vector<double> row(features.size());
  space.encode(DesignBatch(design, design.size()), encoding, row);
  EXPECT_EQ(std::ranges::count(row, 1.0), 6 + 1 + 3 + 1);
  EXPECT_EQ(row[31], 1);  // int8
}

TEST(PolicySpace, TheEngineRunsThem) {
  for (const auto* design : {"421233+int8+w50-w75-w100", "333333+fp32+w75-w50-w50"}) {
    auto program = engine::Program::prepare(network("nasbench201+precision+pruning", design),
                                            {.choosing = engine::Choosing::fixed});
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_TRUE(program->run());
  }
}

TEST(PolicySpace, MutantsAndChildrenAreDesigns) {
  core::Random random(1);
  const auto& space = known("icpe+precision+pruning");
  const auto parents = sample_designs(space, {.count = 2}).value();
  for (int i = 0; i < 50; ++i) {
    std::vector<Choice> child(space.genes().size());
    space.crossover(random, parents[0], parents[1], child);
    EXPECT_TRUE(space.check(child));
    space.mutate(random, 0.3, child);
    EXPECT_TRUE(space.check(child));
  }
}

}  // namespace
}  // namespace fleetfit::space
