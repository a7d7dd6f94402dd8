#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "fleetfit/core/random.h"
#include "fleetfit/elastic/expand.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/shape_inference.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::elastic {
namespace {

/// A network, made small enough for the plain interpreter, and what it is cut into.
struct Network {
  const char* name;
  std::int64_t image;
  double width;
  double granularity;
  std::size_t blocks;
  std::size_t elastic;
};

std::ostream& operator<<(std::ostream& out, const Network& network) { return out << network.name; }

class ZooNetwork : public ::testing::TestWithParam<Network> {
 protected:
  ZooNetwork()
      : model_(graph::build_zoo_network(
                   GetParam().name,
                   {.width = GetParam().width, .classes = 10, .image = GetParam().image})
                   .value()),
        supernet_(expand(model_, {.granularity = GetParam().granularity}).value()),
        space_({supernet_}) {}

  /// The subnet that takes the last choice of every gene that is active.
  std::vector<space::Choice> last_choices() const {
    std::vector<space::Choice> design(space_.genes().size());
    for (std::size_t g = 0; g < design.size(); ++g) {
      if (space_.is_active(design, g))
        design[g] = static_cast<space::Choice>(space_.genes()[g].choices.size() - 1);
    }
    return design;
  }

  graph::Graph model_;
  Supernet supernet_;
  SubnetSpace space_;
};

TEST_P(ZooNetwork, IsCutIntoItsBlocks) {
  EXPECT_EQ(supernet_.blocks.size(), GetParam().blocks);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(
                supernet_.blocks, [](const Block& b) { return b.branches.size() > 1; })),
            GetParam().elastic);
}

TEST_P(ZooNetwork, IsTheSameNetworkWhenJoinedAgain) {
  const auto joined = space_.lower(space_.original()).value();
  const auto inputs = graph::random_inputs(model_, 5);
  const auto expected = graph::evaluate(model_, inputs).value();
  const auto got = graph::evaluate(joined, inputs).value();
  ASSERT_EQ(got[0].shape, expected[0].shape);
  const auto a = expected[0].data.as<float>();
  const auto b = got[0].data.as<float>();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i], 1e-5 * (1 + std::abs(a[i])));
}

TEST_P(ZooNetwork, RunsOnEveryWay) {
  core::Random random(2);
  auto design = last_choices();
  for (int i = 0; i < 2; ++i) {
    const auto subnet = space_.lower(design).value();
    const auto inputs = graph::random_inputs(subnet, 5);
    const auto outputs = graph::evaluate(subnet, inputs);
    ASSERT_TRUE(outputs) << space_.format(design) << ": " << outputs.error().message;
    EXPECT_EQ((*outputs)[0].shape, (graph::Shape{1, 10}));
    EXPECT_TRUE(std::ranges::all_of((*outputs)[0].data.as<float>(),
                                    [](float v) { return std::isfinite(v); }));
    space_.sample(random, design);
  }
}

TEST_P(ZooNetwork, LeavesTheBatchOpen) {
  core::Random random(4);
  std::vector<space::Choice> design(space_.genes().size());
  for (int i = 0; i < 5; ++i) {
    auto subnet = space_.lower(design).value();
    const auto bound = graph::bind_dimensions(subnet, {{"N", 3}});
    ASSERT_TRUE(bound) << space_.format(design) << ": " << bound.error().message;
    EXPECT_EQ(subnet.tensor(subnet.outputs[0]).shape, (graph::Shape{3, 10}));
    space_.sample(random, design);
  }
}

TEST_P(ZooNetwork, HasBranchesThatCanBeBoundToABatchAlone) {
  for (const auto& block : supernet_.blocks) {
    for (const auto& branch : block.branches) {
      graph::Graph graph = branch.graph;
      const auto bound = graph::bind_dimensions(graph, {{"N", 3}});
      ASSERT_TRUE(bound) << block.name << ": " << bound.error().message;
      EXPECT_EQ(graph.tensor(graph.inputs[0]).shape->front(), 3) << block.name;
      EXPECT_EQ(graph.tensor(graph.outputs[0]).shape->front(), 3) << block.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ZooNetwork,
                         ::testing::Values(Network{"resnet20", 8, 1, 0.1, 11, 9},
                                           Network{"resnet56", 8, 0.5, 0.1, 29, 27},
                                           Network{"resnet18", 32, 0.125, 0.1, 10, 8},
                                           Network{"resnet50", 32, 0.125, 0.1, 18, 16},
                                           Network{"resnext50_32x4d", 32, 0.25, 0.1, 18, 16},
                                           Network{"mobilenet_v2_small", 8, 1, 0.1, 21, 16},
                                           Network{"mobilenet_v3_small", 32, 0.5, 0.1, 14, 11},
                                           Network{"mobilenet_v1", 32, 0.25, 0.2, 11, 6},
                                           Network{"vgg11", 32, 0.125, 0.2, 7, 4},
                                           Network{"densenet121", 32, 0.25, 0.1, 63, 58},
                                           Network{"deit_tiny", 16, 0.33, 0.1, 14, 12},
                                           Network{"squeezenet1_1", 64, 0.25, 0.5, 10, 9},
                                           Network{"shufflenet_v2_x0_5", 32, 1, 0.1, 19, 16},
                                           Network{"shufflenet_v1_g3_x0_5", 32, 1, 0.1, 18, 10}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace fleetfit::elastic
