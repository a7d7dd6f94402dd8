#include "fleetfit/adapt/guided.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "adapt/branch_paths.h"
#include "small_supernet.h"

namespace fleetfit::adapt {
namespace {

/// A chain of six elastic blocks with random latencies. A branch loses what it loses, whatever the
/// others are.
class Searching : public testing::Test, protected SubnetQuality {
 protected:
  Searching() {
    core::Random random(5);
    table_.ms = losses_ = zeros(models_);
    for (std::size_t b = 0; b < models_[0].blocks.size(); ++b)
      for (std::size_t i = 0; i < models_[0].blocks[b].branches.size(); ++i) {
        const auto span = static_cast<double>(models_[0].blocks[b].branches[i].span);
        table_.ms[0][b][i] = i == 0 ? 1 : random.uniform(0.2, 0.9) * span;
        losses_[0][b][i] = i == 0 ? 0 : random.uniform(0.001, 0.05) * span;
      }
  }

  Evaluation quality_of(space::Design design) const {
    double quality = 0.95;
    for (const auto& [model, block, branch] : space_.path(design))
      quality -= losses_[model][block][branch];
    return {.accuracy = quality, .confidence = quality};
  }

  Result<std::vector<Evaluation>> evaluate(space::DesignBatch designs) override {
    std::vector<Evaluation> evaluations;
    for (std::size_t i = 0; i < designs.size(); ++i) {
      evaluations.push_back(quality_of(designs[i]));
      seen_.insert(space_.format(designs[i]));
      ++asked_;
    }
    return evaluations;
  }
  std::size_t evaluated() const override { return seen_.size(); }

  double true_optimum(double budget_ms) const {
    double best = 0;
    for (const auto& design : all_designs(space_))
      if (table_.subnet_ms(space_.path(design)) <= budget_ms)
        best = std::max(best, quality_of(design).accuracy);
    return best;
  }

  double best_found(const SearchedSubnets& searched, double budget_ms) const {
    double best = 0;
    for (const auto& subnet : searched.subnets)
      if (subnet.latency_ms <= budget_ms) best = std::max(best, subnet.evaluation.accuracy);
    return best;
  }

  SubnetProblem problem(double budget_ms) const { return {models_, space_, table_, budget_ms}; }

  std::vector<elastic::Supernet> models_ = {small_supernet(1, 6)};
  elastic::SubnetSpace space_{models_};
  LatencyTable table_;
  BranchNumbers losses_;
  std::set<std::string> seen_;
  std::size_t asked_ = 0;
};

TEST_F(Searching, NearbyInitAndMutateStayInTheWindow) {
  const LatencyWindow window{.low_ms = 4.5, .high_ms = 5};
  const Nearby nearby(space_, table_, window);
  core::Random random(1);
  std::vector<space::Choice> design(space_.genes().size());
  std::set<std::string> different;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(nearby.init(random, design));
    EXPECT_TRUE(window.holds(nearby.latency_ms(design)));
    EXPECT_TRUE(space_.check(design));
    const auto before = space_.format(design);
    if (nearby.mutate(random, design)) {
      EXPECT_TRUE(window.holds(nearby.latency_ms(design)));
      EXPECT_TRUE(space_.check(design));
      EXPECT_NE(space_.format(design), before);
    }
    different.insert(space_.format(design));
  }
  EXPECT_GT(different.size(), 25U);
}

TEST_F(Searching, NearbySaysSoWhereNothingIsInTheWindow) {
  const Nearby nearby(space_, table_, {.low_ms = 100, .high_ms = 101});
  core::Random random(1);
  std::vector<space::Choice> design(space_.genes().size());
  EXPECT_FALSE(nearby.init(random, design));
}

TEST_F(Searching, GuidedFindsTheOptimumOfASmallSpace) {
  for (const double budget : {3.5, 4.5, 6.0}) {
    seen_.clear();
    const auto task = problem(budget);
    const auto strategy = make_guided(task, core::Random(3));
    const auto searched = search_subnets(task, *this, *strategy).value();
    EXPECT_NEAR(best_found(searched, budget), true_optimum(budget), 1e-9) << budget;
    EXPECT_LT(seen_.size(), 220U);
    EXPECT_EQ(asked_, seen_.size()) << "no subnet is proposed twice";
    asked_ = 0;
  }
}

TEST_F(Searching, GuidedLooksAtOtherLatenciesToo) {
  const auto task = problem(4.5);
  const auto strategy = make_guided(task, core::Random(3));
  const auto searched = search_subnets(task, *this, *strategy).value();
  // Levels are a tenth apart.
  for (const double other : {3.5, 5.5, 7.0})
    EXPECT_GT(best_found(searched, other), true_optimum(0.88 * other) - 0.005) << other;
}

TEST_F(Searching, NearbyStrategiesStayNearTheBudgetAndFindGoodSubnets) {
  const auto task = problem(4.5);
  const auto optimum = true_optimum(4.5);
  for (const bool anneals : {false, true}) {
    const auto strategy =
        anneals
            ? search::make_annealing(nearby_moves(task), core::Random(2),
                                     {.chains = 20, .steps = 90, .last_temperature = 0.01})
            : search::make_evolution(nearby_moves(task), core::Random(2),
                                     {.population = 50, .generations = 40, .mutation_ratio = 1});
    const auto searched = search_subnets(task, *this, **strategy).value();
    EXPECT_FALSE(searched.subnets.empty());
    for (const auto& subnet : searched.subnets) {
      EXPECT_GE(subnet.latency_ms, 0.9 * 4.5 - 1e-9);
      EXPECT_LE(subnet.latency_ms, 1.1 * 4.5 + 1e-9);
    }
    EXPECT_GT(best_found(searched, 4.5), optimum - 0.01);
  }
}

TEST_F(Searching, GuidedTakesTheMostAccurateWhereTheBudgetLimitsNothing) {
  const auto task = problem(1000);
  const auto strategy = make_guided(task, core::Random(3));
  const auto searched = search_subnets(task, *this, *strategy).value();
  EXPECT_NEAR(best_found(searched, 1000), 0.95, 1e-12);
}

TEST_F(Searching, PatienceEndsASearchThatDoesNotGetBetter) {
  const auto task = problem(4.5);
  auto endless = search::make_random(space_, core::Random(1), {.designs = 2000, .batch = 10});
  const auto patient = search::make_patient(std::move(endless).value(), 3);
  const auto searched = search_subnets(task, *this, *patient).value();
  EXPECT_LT(searched.subnets.size(), 2000U);
  // The last three batches brought nothing better.
  const std::size_t before = searched.subnets.size() - 30;
  SearchedSubnets earlier = searched;
  earlier.subnets.resize(before);
  EXPECT_EQ(best_found(earlier, 4.5), best_found(searched, 4.5));
}

TEST_F(Searching, FinalistsAreTheBestNearTheBudgetAndAtOtherLatencies) {
  SearchedSubnets searched;
  const auto add = [&](double ms, double score) {
    searched.subnets.push_back(
        {.latency_ms = ms, .evaluation = {.accuracy = score, .confidence = score}});
  };
  add(1, 0.5);  // the quickest
  add(2, 0.4);  // dominated, and not among the best within the budget
  add(3, 0.8);  // the best within the budget
  add(2.9, 0.7);
  add(3.05, 0.85);  // just beyond
  add(9, 0.9);      // the most accurate
  const auto chosen = finalists(searched, 3, {.near = 2, .levels = 2});
  // Two within 3.09 ms; the best within 2.91 ms is 2.9, within 2.73 ms the quickest.
  EXPECT_EQ(chosen.near, (std::vector<std::size_t>{4, 2, 3, 0}));
  EXPECT_EQ(chosen.levels, (std::vector<std::size_t>{0, 5}));
}

}  // namespace
}  // namespace fleetfit::adapt
