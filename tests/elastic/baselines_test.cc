#include <gtest/gtest.h>

#include "bench/elastic_baselines.h"
#include "tests/elastic/conv_supernet.h"

namespace fleetfit::bench {
namespace {

std::vector<std::string> texts(const elastic::SubnetSpace& space) {
  std::vector<std::string> all;
  std::vector<space::Choice> design(space.genes().size());
  do {
    all.push_back(space.format(design));
  } while (space.next(design));
  return all;
}

TEST(EarlyExits, LeaveTheChainAfterAnyBlock) {
  const std::vector<elastic::Supernet> models = {early_exits(elastic::conv_supernet(), 1).value()};
  const elastic::SubnetSpace space(models);
  EXPECT_EQ(texts(space), (std::vector<std::string>{"o", "m1"}));
  const auto network = space.lower(space.parse("m1").value()).value();
  const auto& output = network.tensor(network.outputs[0]);
  EXPECT_EQ(output.name, "classes");
  EXPECT_EQ(output.shape, (graph::Shape{1, 3}));
  // The first block's two convolutions with their batch-norms and an activation; mean, flatten and
  // a dense layer.
  EXPECT_EQ(network.nodes.size(), 5U + 3U);
}

TEST(EarlyExits, NeedAClassifier) {
  auto model = elastic::conv_supernet();
  model.blocks.pop_back();
  EXPECT_EQ(early_exits(model, 1).error().code, ErrorCode::unsupported);
}

TEST(UniformWidths, ShrinkAllBlocksAlike) {
  const auto model = elastic::conv_supernet();
  const auto widths = uniform_widths(model).value();
  ASSERT_EQ(widths.size(), 3U);
  const auto same = [](const elastic::Supernet& width, std::size_t block, std::int64_t inner,
                       std::uint64_t seed) {
    return !first_difference(width.blocks[block].branches[0].graph,
                             elastic::two_convolutions(inner, seed));
  };
  EXPECT_TRUE(same(widths[0], 0, 4, 1) && same(widths[0], 1, 4, 4));
  EXPECT_TRUE(same(widths[1], 0, 2, 2) && same(widths[1], 1, 2, 5));
  EXPECT_TRUE(same(widths[2], 0, 4, 1) && same(widths[2], 1, 1, 6)) << "the first has one level";
  EXPECT_EQ(elastic::SubnetSpace(widths).size().exact(), 3U);
}

TEST(UniformWidths, NeedBlocksThatShrink) {
  auto model = elastic::conv_supernet();
  for (auto& block : model.blocks) block.branches.resize(1);
  EXPECT_FALSE(uniform_widths(model));
}

}  // namespace
}  // namespace fleetfit::bench
