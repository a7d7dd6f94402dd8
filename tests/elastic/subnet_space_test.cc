#include <gtest/gtest.h>

#include <set>

#include "fleetfit/core/random.h"
#include "fleetfit/elastic/supernet.h"
#include "scaling_supernet.h"

namespace fleetfit::elastic {
namespace {

using Row = std::vector<space::Choice>;

std::set<std::string> all_texts(const SubnetSpace& space) {
  std::set<std::string> texts;
  Row design(space.genes().size());
  do {
    EXPECT_TRUE(space.check(design));
    EXPECT_TRUE(texts.insert(space.format(design)).second) << space.format(design);
  } while (space.next(design));
  return texts;
}

TEST(SubnetSpace, HasEveryWayThroughTheChainOnce) {
  const SubnetSpace space({scaling_supernet()});
  EXPECT_EQ(all_texts(space), (std::set<std::string>{"o-o", "o-s1", "s1-o", "s1-s1", "m1", "m2"}));
  EXPECT_EQ(space.size().exact(), 6U);
}

TEST(SubnetSpace, ReadsWhatItWrites) {
  const SubnetSpace space({scaling_supernet()});
  EXPECT_EQ(space.parse("s1-s1").value(), (Row{1, 1}));
  EXPECT_EQ(space.parse("m1").value(), (Row{2, 0}));
  EXPECT_EQ(space.parse("m1-o").error().message, "'-o' stands behind the end of the design");
  EXPECT_EQ(space.parse("s9").error().message, "block 0: found 's9', not o, s1, m1, m2");
}

TEST(SubnetSpace, LeavesOutBlocksThatAMergedOneStandsFor) {
  const SubnetSpace space({scaling_supernet()});
  const Row merged{2, 0};
  EXPECT_FALSE(space.is_active(merged, 1));
  EXPECT_TRUE(space.is_active(Row{1, 0}, 1));
  EXPECT_EQ(space.active_slots(merged).to_ullong(), 0b01U);
  EXPECT_EQ(space.active_slots(Row{0, 1}).to_ullong(), 0b11U);
  const std::vector<BranchId> path = {{.block = 0, .branch = 2}, {.block = 2, .branch = 0}};
  EXPECT_EQ(space.path(merged), path);
}

TEST(SubnetSpace, HasTheSubnetsOfSeveralModels) {
  const SubnetSpace space({scaling_supernet("small"), scaling_supernet("large")});
  EXPECT_EQ(space.size().exact(), 12U);
  EXPECT_EQ(all_texts(space).size(), 12U);
  const auto design = space.parse("large:m1").value();
  const std::vector<BranchId> path = {{.model = 1, .block = 0, .branch = 2},
                                      {.model = 1, .block = 2, .branch = 0}};
  EXPECT_EQ(space.path(design), path);
  EXPECT_EQ(space.format(space.original(1)), "large:o-o");
  EXPECT_EQ(space.genes()[*space.gene_of(1, 1)].name, "large block 1");
  EXPECT_FALSE(space.gene_of(1, 2).has_value());
}

TEST(SubnetSpace, TellsModelsOfOneNameApart) {
  const SubnetSpace space({scaling_supernet("net"), scaling_supernet("net")});
  EXPECT_EQ(space.format(space.original(1)), "net#2:o-o");
}

TEST(SubnetSpace, DrawsSubnetsThatItTakes) {
  const SubnetSpace space({scaling_supernet("small"), scaling_supernet("large")});
  core::Random random(3);
  Row design(space.genes().size());
  for (int i = 0; i < 200; ++i) {
    space.sample(random, design);
    ASSERT_TRUE(space.check(design));
    space.mutate(random, 0.5, design);
    ASSERT_TRUE(space.check(design));
  }
}

TEST(SubnetSpace, OfAModelWithoutChoicesHasOneDesign) {
  Supernet fixed = scaling_supernet("fixed");
  for (auto& block : fixed.blocks) block.branches.resize(1);
  const SubnetSpace space({fixed});
  EXPECT_EQ(all_texts(space), (std::set<std::string>{"fixed"}));
  EXPECT_EQ(space.path(space.original()).size(), 3U);
}

TEST(CheckSupernets, TakesWhatFitsTogether) {
  EXPECT_TRUE(check_supernets({scaling_supernet(), scaling_supernet()}));
}

TEST(CheckSupernets, NamesTheBlockThatDoesNotFit) {
  const auto message = [](const Supernet& model) {
    const auto checked = check_supernets({model});
    return checked ? std::string() : checked.error().message;
  };
  auto model = scaling_supernet();
  model.blocks[1].branches[1].graph = times(1, {1, 3});
  EXPECT_EQ(message(model),
            "model scaling: block 1 (second): a branch takes another shape than the block");
  model = scaling_supernet();
  model.blocks[1].branches[0].graph = model.blocks[1].branches[1].graph = times(1, {1, 3});
  EXPECT_EQ(message(model),
            "model scaling: block 0 (first): a branch gives another shape than what it stands for");
  model = scaling_supernet();
  model.blocks[1].branches.push_back(branch(BranchKind::merged, 1, 3));
  EXPECT_EQ(message(model),
            "model scaling: block 1 (second): a branch stands for blocks beyond the last");
  model = scaling_supernet();
  model.blocks[0].branches[3].span = 2;
  EXPECT_EQ(message(model), "model scaling: block 0 (first): two branches are m1");
  model = scaling_supernet();
  model.blocks.clear();
  EXPECT_EQ(message(model), "model scaling: it has no blocks");
}

TEST(CheckSupernets, RefusesMoreChoicesThanASpaceHolds) {
  auto model = scaling_supernet();
  const Block block = model.blocks[1];
  model.blocks.assign(257, block);
  EXPECT_EQ(check_supernets({model}).error().message,
            "257 blocks have a choice, a space holds 256");
  model.blocks.resize(256);
  EXPECT_TRUE(check_supernets({model}));
}

}  // namespace
}  // namespace fleetfit::elastic
