#include "adapt/branch_paths.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "fleetfit/core/random.h"
#include "small_supernet.h"

namespace fleetfit::adapt {
namespace {

class BranchPaths : public testing::Test {
 protected:
  BranchNumbers random_numbers(std::uint64_t seed) const {
    core::Random random(seed);
    auto numbers = zeros(models_);
    for (auto& model : numbers)
      for (auto& block : model)
        for (double& number : block) number = random.uniform(0.1, 1);
    return numbers;
  }

  std::vector<elastic::Supernet> models_ = {small_supernet(1, 4), small_supernet(1, 2)};
  elastic::SubnetSpace space_{models_};
};

TEST_F(BranchPaths, CoverEveryBranch) {
  const auto paths = covering_paths(models_);
  std::set<elastic::BranchId> covered;
  for (const auto& path : paths) covered.insert(path.begin(), path.end());
  std::size_t branches = 0;
  for (const auto& model : models_)
    for (const auto& block : model.blocks) branches += block.branches.size();
  EXPECT_EQ(covered.size(), branches);
  // Of four blocks the three single branches take three paths, the merged ones two.
  EXPECT_LE(paths.size(), 5U + 4U);
}

TEST_F(BranchPaths, AreThoseOfTheirDesigns) {
  for (const auto& design : all_designs(space_))
    EXPECT_EQ(design_of(space_, space_.path(design)), design);
}

TEST_F(BranchPaths, TheQuickestIsTheQuickestOfAll) {
  const LatencyTable table{.ms = random_numbers(1)};
  double least = std::numeric_limits<double>::infinity();
  for (const auto& design : all_designs(space_))
    least = std::min(least, table.subnet_ms(space_.path(design)));
  EXPECT_NEAR(table.subnet_ms(fastest_subnet(models_, table)), least, 1e-12);
}

TEST_F(BranchPaths, TheFrontierHasTheBestSubnetOfEachBudget) {
  const LatencyTable table{.ms = random_numbers(2), .overhead_ms = 0.2};
  const PathValues values{.offsets = {0, 0.3}, .branches = random_numbers(3)};
  const auto paths = frontier(models_, table, values, {.ranges = 4000, .per_range = 2});
  for (const double budget : {2.0, 2.5, 3.0, 4.0}) {
    double best = 0;
    for (const auto& design : all_designs(space_)) {
      const auto path = space_.path(design);
      double value = values.offsets[path.front().model];
      for (const auto& [model, block, branch] : path)
        value += values.branches[model][block][branch];
      if (table.subnet_ms(path) <= budget) best = std::max(best, value);
    }
    double found = 0;
    for (const auto& valued : paths) {
      EXPECT_NEAR(valued.ms, table.subnet_ms(valued.path), 1e-12);
      if (valued.ms <= budget) found = std::max(found, valued.value);
    }
    EXPECT_NEAR(found, best, 1e-12) << budget;
  }
}

}  // namespace
}  // namespace fleetfit::adapt
