#include "adapt/batch_walk.h"

#include <gtest/gtest.h>

namespace fleetfit::adapt {
namespace {

using elastic::BranchId;

/// A tree of two subnets that share their first branch of 10 bytes, and a third that shares two
/// branches with the first.
class ThreeSubnets : public testing::Test {
 protected:
  ThreeSubnets() {
    tree_.begin_round();
    ends_ = {add({0, 0, 0}), add({0, 1, 0}), add({0, 0, 1})};
  }

  std::size_t add(const std::vector<std::size_t>& branches) {
    std::vector<BranchId> path;
    std::vector<PrefixTree::Cost> costs;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      path.push_back({.block = b, .branch = branches[b]});
      costs.push_back({.ms = 1, .bytes = 10});
    }
    return tree_.add(path, costs);
  }

  std::vector<bool> cached() const {
    std::vector<bool> flags;
    for (const auto& node : tree_.nodes()) flags.push_back(node.is_cached);
    return flags;
  }
  std::size_t stored() const {
    std::size_t count = 0;
    for (const auto& node : tree_.nodes()) count += node.is_stored ? 1 : 0;
    return count;
  }

  PrefixTree tree_;
  std::vector<std::size_t> ends_;
};

// Nodes in the order of their making: root, 0, 00, 000, 01, 010, 001.
TEST_F(ThreeSubnets, CountHowManyBeginAlike) {
  ASSERT_EQ(tree_.nodes().size(), 7U);
  EXPECT_EQ(tree_.node(1).uses, 3U);
  EXPECT_EQ(tree_.node(1).forks, 2U);
  EXPECT_EQ(tree_.node(2).uses, 2U);
  EXPECT_EQ(tree_.node(2).forks, 2U);
  EXPECT_EQ(tree_.node(4).forks, 1U);
  EXPECT_EQ(tree_.node(2).prefix_ms, 2);
}

TEST_F(ThreeSubnets, AreVisitedWithTheirLikes) {
  EXPECT_EQ(tree_.in_order(ends_), (std::vector<std::size_t>{ends_[0], ends_[2], ends_[1]}));
}

TEST_F(ThreeSubnets, KeepWhereTheyPartIfThereIsRoom) {
  EXPECT_EQ(tree_.plan({.bytes = 20, .batches = 100}), 20U);
  EXPECT_EQ(cached(), (std::vector<bool>{false, true, true, false, false, false, false}));
}

TEST_F(ThreeSubnets, KeepTheMostImportantIfThereIsLittleRoom) {
  // 2 ms shared by two are more than 1 ms shared by three.
  EXPECT_EQ(tree_.plan({.bytes = 19, .batches = 100}), 10U);
  EXPECT_EQ(cached(), (std::vector<bool>{false, false, true, false, false, false, false}));
}

TEST_F(ThreeSubnets, KeepNothingWithoutRoom) {
  EXPECT_EQ(tree_.plan({.bytes = 0, .batches = 1}), 0U);
  EXPECT_EQ(cached(), std::vector<bool>(7, false));
  EXPECT_EQ(stored(), 0U);
}

TEST_F(ThreeSubnets, ShareTheRoomAmongWorkers) {
  EXPECT_EQ(tree_.plan({.bytes = 39, .workers = 2, .batches = 100}), 20U);
}

TEST_F(ThreeSubnets, StoreWithWhatIsLeftForLaterRounds) {
  // 20 bytes on the way, 60 are left: two nodes for three batches of 10 bytes each.
  tree_.plan({.bytes = 80, .batches = 3});
  EXPECT_TRUE(tree_.node(1).is_stored);
  EXPECT_TRUE(tree_.node(2).is_stored);
  EXPECT_EQ(stored(), 2U);
}

TEST_F(ThreeSubnets, ForgetSlowlyWhatIsNotUsed) {
  const auto wanted_after = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) tree_.begin_round();
    return tree_.node(1).wanted;
  };
  const double first = wanted_after(1);
  EXPECT_GT(first, 0);
  EXPECT_LT(wanted_after(3), first);
}

}  // namespace
}  // namespace fleetfit::adapt
