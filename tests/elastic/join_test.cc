#include <gtest/gtest.h>

#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/evaluate.h"
#include "scaling_supernet.h"

namespace fleetfit::elastic {
namespace {

float factor_of(const graph::Graph& network) {
  const std::vector<float> one{1, 1};
  const std::vector<graph::Value> inputs{
      {.shape = {1, 2}, .data = graph::TensorData::copy(one), .quantization = {}}};
  return graph::evaluate(network, inputs).value()[0].data.as<float>()[0];
}

TEST(Join, RunsTheBranchesOneAfterTheOther) {
  const SubnetSpace space({scaling_supernet()});
  const auto factor = [&](std::string_view text) {
    return factor_of(space.lower(space.parse(text).value()).value());
  };
  EXPECT_EQ(factor("o-o"), 2 * 7 * 13);
  EXPECT_EQ(factor("s1-o"), 3 * 7 * 13);
  EXPECT_EQ(factor("s1-s1"), 3 * 11 * 13);
  EXPECT_EQ(factor("m1"), 5 * 13);
  EXPECT_EQ(factor("m2"), 17);
}

TEST(Join, NamesNodesByBlockAndKeepsTheModelsInputsAndOutputs) {
  const SubnetSpace space({scaling_supernet()});
  const auto network = space.lower(space.parse("m1").value()).value();
  ASSERT_EQ(network.nodes.size(), 2U);
  EXPECT_TRUE(network.nodes[0].name.starts_with("b0/"));
  EXPECT_TRUE(network.nodes[1].name.starts_with("b2/"));
  EXPECT_EQ(network.tensor(network.inputs[0]).name, "x");
  EXPECT_EQ(network.tensor(network.outputs[0]).name, "y");
  EXPECT_EQ(network.name, "scaling");
}

TEST(Join, RefusesPathsWithGapsAndBranchesThatDoNotFit) {
  std::vector<Supernet> models{scaling_supernet()};
  const auto message = [&](const std::vector<BranchId>& path) {
    return join(models, path).error().message;
  };
  EXPECT_EQ(message({}), "the path has a gap");
  EXPECT_EQ(message({{.block = 0}, {.block = 1}}), "the path has a gap");
  EXPECT_EQ(message({{.block = 0, .branch = 9}}), "the path has a gap");
  models[0].blocks[1].branches[0].graph = times(1, {1, 3});
  EXPECT_EQ(message({{.block = 0}, {.block = 1}, {.block = 2}}),
            "block 1 (second): it takes 1x3, the block before gives 1x2");
}

TEST(BlockOf, ReadsTheBlockOffTheFirstNode) {
  EXPECT_EQ(block_of("b3/conv").value(), 3U);
  EXPECT_EQ(block_of("b12/conv+b12/bn+b13/relu").value(), 12U);
  for (const auto* name : {"conv", "b", "b/", "b3", "block3/x", "b-1/x", ""})
    EXPECT_FALSE(block_of(name)) << name;
}

}  // namespace
}  // namespace fleetfit::elastic
