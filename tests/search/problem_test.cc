#include "fleetfit/search/problem.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fleetfit/search/bisection.h"
#include "fleetfit/search/search.h"
#include "tests/search/toy_space.h"

namespace fleetfit::search {
namespace {

const ToySpace kSpace(2, 3);
const FunctionSource kAccuracy([](space::Design d) { return 10.0 * d[0]; });
const FunctionSource kLatency([](space::Design d) { return 1.0 + d[0] + d[1]; });
const FunctionSource kEnergy([](space::Design d) { return d[1] == 2 ? 8.0 : 2.0; });

Problem problem_with(double latency_limit, double energy_limit) {
  return {.space = &kSpace,
          .accuracy = &kAccuracy,
          .costs = {{.name = "latency_ms", .source = &kLatency, .limit = latency_limit},
                    {.name = "energy_mj", .source = &kEnergy, .limit = energy_limit}}};
}

TEST(Score, OfADesignThatKeepsAllLimitsIsMinusItsAccuracy) {
  EXPECT_EQ(score(problem_with(5, 5), {}, std::vector<double>{5, 2, -20}), (Score{0, -20}));
}

TEST(Score, AddsTheSharesByWhichLimitsAreExceeded) {
  // 6 of 4 is half more, 8 of 5 three fifths more.
  const auto both = score(problem_with(4, 5), {}, std::vector<double>{6, 8, -20});
  EXPECT_DOUBLE_EQ(both.violation, 0.5 + 0.6);
}

TEST(Score, PutsTheLeastAccurateThatFitsBeforeTheMostAccurateThatDoesNot) {
  const auto problem = problem_with(4, 5);
  EXPECT_LT(score(problem, {}, std::vector<double>{4, 5, -1}),
            score(problem, {}, std::vector<double>{4.01, 5, -99}));
}

TEST(Score, WeighsInUnitsOfTheScales) {
  auto problem = problem_with(100, 100);
  problem.costs[0].weight = 0.25;
  problem.costs[1].weight = 0.5;
  const Scales scales{.accuracy = 20, .costs = {2, 4}};
  // 0.25 * 3/2 + 0.5 * 8/4 - 0.25 * 10/20
  EXPECT_DOUBLE_EQ(score(problem, scales, std::vector<double>{3, 8, -10}).loss, 1.25);
}

TEST(Score, OfWhatIsNotKnownIsInfinitelyBad) {
  const auto unknown = score(problem_with(4, 5), {}, std::vector<double>{std::nan(""), 1, -1});
  EXPECT_TRUE(std::isinf(unknown.violation));
  EXPECT_TRUE(
      std::isinf(score(problem_with(4, 5), {}, std::vector<double>{1, 1, std::nan("")}).violation));
}

TEST(Scales, AreTheRangeOfTheMiddleNineTenths) {
  Evaluated evaluated{.objectives = 2};
  for (int i = 0; i <= 100; ++i) {
    evaluated.rows.push_back(i);
    evaluated.rows.push_back(7);  // has no spread
  }
  evaluated.rows.insert(evaluated.rows.end(), {std::nan(""), 7});
  const auto scales = scales_of(evaluated);
  EXPECT_DOUBLE_EQ(scales.costs.at(0), 90);
  EXPECT_DOUBLE_EQ(scales.accuracy, 1);
}

TEST(Problem, IsRefusedWithTheNameOfTheCost) {
  auto problem = problem_with(0, 5);
  EXPECT_NE(check(problem).error().message.find("latency_ms"), std::string::npos);
  problem = problem_with(5, std::nan(""));
  EXPECT_NE(check(problem).error().message.find("energy_mj"), std::string::npos);
  problem = problem_with(5, 5);
  problem.costs[1].weight = -0.1;
  EXPECT_NE(check(problem).error().message.find("energy_mj"), std::string::npos);
  problem.costs[0].weight = 0.6;
  problem.costs[1].weight = 0.6;
  EXPECT_NE(check(problem).error().message.find("more than 1"), std::string::npos);
  problem.costs.clear();
  EXPECT_FALSE(check(problem));
}

TEST(DropDominated, LeavesTheDesignsThatAreBestInSomething) {
  std::vector<Candidate> candidates = {{.design = {0}, .accuracy = 90, .costs = {5}},
                                       {.design = {1}, .accuracy = 80, .costs = {2}},
                                       {.design = {2}, .accuracy = 79, .costs = {3}},
                                       {.design = {3}, .accuracy = 90, .costs = {6}}};
  drop_dominated(candidates);
  ASSERT_EQ(candidates.size(), 2U);
  EXPECT_EQ(candidates[0].design[0], 1);
  EXPECT_EQ(candidates[1].design[0], 0);
}

TEST(FleetCost, CountsOnePredictorAgainstOneForEachDevice) {
  const auto cost = fleet_cost({.devices = 100,
                                .measurements = 10,
                                .seconds_per_measurement = 20,
                                .search_s = 1,
                                .predictor_measurements = 1000});
  EXPECT_DOUBLE_EQ(cost.each_device_s, 201);
  EXPECT_DOUBLE_EQ(cost.proxy_s, 20'000 + 100 * 201);
  EXPECT_DOUBLE_EQ(cost.predictors_s, 100 * 20'001);
  EXPECT_DOUBLE_EQ(cost.ratio(), 2'000'100.0 / 40'100.0);
}

}  // namespace
}  // namespace fleetfit::search
