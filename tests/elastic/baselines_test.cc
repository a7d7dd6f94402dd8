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
  const std::vector<elastic::Supernet> models = {elastic::conv_supernet()};
  const auto widths = uniform_widths(models[0]).value();
  ASSERT_EQ(widths.blocks.size(), 1U);
  const auto& branches = widths.blocks[0].branches;
  ASSERT_EQ(branches.size(), 3U);
  const elastic::SubnetSpace space(models);
  const auto same = [&](std::size_t width, std::string_view subnet) {
    const auto expected = space.lower(space.parse(subnet).value()).value();
    return !first_difference(branches[width].graph, expected);
  };
  EXPECT_TRUE(same(0, "o-o"));
  EXPECT_TRUE(same(1, "s1-s1"));
  EXPECT_TRUE(same(2, "o-s2")) << "the first has one level";
  EXPECT_EQ(texts(elastic::SubnetSpace({widths})), (std::vector<std::string>{"o", "s1", "s2"}));
  EXPECT_TRUE(elastic::check_supernets({widths}));
}

TEST(UniformWidths, NeedBlocksThatShrink) {
  auto model = elastic::conv_supernet();
  for (auto& block : model.blocks) block.branches.resize(1);
  EXPECT_FALSE(uniform_widths(model));
}

}  // namespace
}  // namespace fleetfit::bench
