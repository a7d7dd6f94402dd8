#include "fleetfit/search/pareto.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "fleetfit/core/random.h"

namespace fleetfit::search {
namespace {

using Numbers = std::vector<std::size_t>;

/// Few different values, so that equal ones are common.
std::vector<double> random_points(std::size_t count, std::size_t objectives, std::uint64_t seed) {
  core::Random random(seed);
  std::vector<double> values(count * objectives);
  for (double& value : values) value = static_cast<double>(random.below(12));
  return values;
}

/// By comparing all with all.
Numbers set_by_comparing(const PointsView& points) {
  Numbers set;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool stays = true;
    for (std::size_t j = 0; j < points.size(); ++j) {
      bool nowhere_worse = true;
      bool equal = true;
      for (std::size_t o = 0; o < points.objectives; ++o) {
        nowhere_worse = nowhere_worse && points[j][o] <= points[i][o];
        equal = equal && points[j][o] == points[i][o];
      }
      if (nowhere_worse && (!equal || j < i)) stays = false;
    }
    if (stays) set.push_back(i);
  }
  return set;
}

/// By counting unit cubes: the points are whole numbers.
double volume_by_counting(const PointsView& points, const std::vector<double>& reference) {
  double cubes = 0;
  std::vector<double> corner(reference.size(), 0);
  while (true) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      bool inside = true;
      for (std::size_t o = 0; o < corner.size(); ++o) inside = inside && points[i][o] <= corner[o];
      if (!inside) continue;
      ++cubes;
      break;
    }
    std::size_t o = 0;
    while (o < corner.size() && ++corner[o] >= reference[o]) corner[o++] = 0;
    if (o == corner.size()) return cubes;
  }
}

TEST(ParetoSet, HoldsWhatNothingBeatsInTheOrderOfTheFirstObjective) {
  // By hand: (1,5) and (2,3) and (4,1) stay; (3,3) loses to (2,3), (4,4) to (2,3), (5,1) to (4,1).
  const std::vector<double> values = {4, 1, 3, 3, 2, 3, 4, 4, 1, 5, 5, 1};
  EXPECT_EQ(pareto_set({values, 2}), (Numbers{4, 2, 0}));
}

TEST(ParetoSet, KeepsTheFirstOfEqualPoints) {
  const std::vector<double> values = {2, 2, 1, 3, 2, 2, 1, 3};
  EXPECT_EQ(pareto_set({values, 2}), (Numbers{1, 0}));
}

TEST(ParetoSet, NeverHoldsANan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> two = {nan, 0, 3, 3, 0, nan};
  EXPECT_EQ(pareto_set({two, 2}), (Numbers{1}));
  const std::vector<double> three = {nan, 0, 0, 3, 3, 3};
  EXPECT_EQ(pareto_set({three, 3}), (Numbers{1}));
  EXPECT_TRUE(pareto_set({{}, 2}).empty());
}

TEST(ParetoSet, IsTheLeastOfOneObjective) {
  const std::vector<double> values = {4, 2, 3, 2};
  EXPECT_EQ(pareto_set({values, 1}), (Numbers{1}));
}

class RandomPoints : public testing::TestWithParam<std::size_t> {};

TEST_P(RandomPoints, HaveTheSetThatComparingAllWithAllGives) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto values = random_points(60, GetParam(), seed);
    const PointsView points{values, GetParam()};
    auto set = pareto_set(points);
    std::ranges::sort(set);
    EXPECT_EQ(set, set_by_comparing(points)) << "seed " << seed;
  }
}

TEST_P(RandomPoints, AreNumberedByTakingAwaySetAfterSet) {
  const auto values = random_points(60, GetParam(), 7);
  const PointsView points{values, GetParam()};
  const auto numbers = front_numbers(points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    // One more than the largest number of those that dominate it.
    std::uint32_t expected = 0;
    for (std::size_t j = 0; j < points.size(); ++j)
      if (dominates(points[j], points[i])) expected = std::max(expected, numbers[j] + 1);
    EXPECT_EQ(numbers[i], expected) << "point " << i;
  }
}

TEST_P(RandomPoints, GiveTheSameSetInBatches) {
  const auto values = random_points(90, GetParam(), 3);
  const PointsView points{values, GetParam()};
  ParetoArchive archive(GetParam());
  for (std::size_t first = 0; first < points.size(); first += 20) {
    const std::size_t count = std::min<std::size_t>(20, points.size() - first);
    archive.add({points.values.subspan(first * GetParam(), count * GetParam()), GetParam()}, first);
  }
  const auto whole = pareto_set(points);
  EXPECT_EQ(Numbers(archive.numbers().begin(), archive.numbers().end()), whole);
  for (std::size_t i = 0; i < whole.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(archive.points()[i], points[whole[i]]));
}

INSTANTIATE_TEST_SUITE_P(Objectives, RandomPoints, testing::Values(1U, 2U, 3U, 4U));

TEST(FrontNumbers, PutNanLast) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {1, 1, nan, 0, 2, 2};
  EXPECT_EQ(front_numbers({values, 2}), (std::vector<std::uint32_t>{0, 2, 1}));
}

TEST(Hypervolume, OfTwoObjectivesIsTheAreaUnderTheReference) {
  // By hand, up to (6,6): (1,4) gives 5 x 2, (3,2) adds 3 x 2, (5,1) adds 1 x 1.
  const std::vector<double> values = {3, 2, 1, 4, 5, 1, 5, 5};
  EXPECT_DOUBLE_EQ(hypervolume({values, 2}, std::vector<double>{6, 6}).value(), 17);
}

TEST(Hypervolume, OfTwoBoxesIsTheirSumWithoutTheirIntersection) {
  // By hand: boxes 2 x 3 x 3 and 3 x 1 x 3 that share 2 x 1 x 3; a point beyond adds nothing.
  const std::vector<double> values = {1, 0, 0, 0, 2, 0, 4, 0, 0};
  EXPECT_DOUBLE_EQ(hypervolume({values, 3}, std::vector<double>{3, 3, 3}).value(), 18 + 9 - 6);
}

TEST(Hypervolume, OfRandomPointsIsTheCountOfUnitCubes) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const std::size_t objectives : {2U, 3U}) {
      const auto values = random_points(15, objectives, seed);
      const std::vector<double> reference(objectives, 11);
      EXPECT_DOUBLE_EQ(hypervolume({values, objectives}, reference).value(),
                       volume_by_counting({values, objectives}, reference))
          << objectives << " objectives, seed " << seed;
    }
  }
}

TEST(Hypervolume, OfNothingIsZero) {
  EXPECT_EQ(hypervolume({{}, 2}, std::vector<double>{1, 1}).value(), 0);
}

TEST(Hypervolume, RefusesWhatItCannotDo) {
  const std::vector<double> values = {1, 2, 3, 4};
  EXPECT_EQ(hypervolume({values, 4}, std::vector<double>(4, 9)).error().code,
            ErrorCode::unsupported);
  EXPECT_EQ(hypervolume({values, 2}, std::vector<double>(3, 9)).error().code,
            ErrorCode::invalid_input);
  const std::vector<double> nan = {1, std::nan("")};
  EXPECT_EQ(hypervolume({nan, 2}, std::vector<double>(2, 9)).error().code,
            ErrorCode::invalid_input);
}

TEST(LoneliestFirst, TakesTheEndsAndThenWhatHasItsNeighboursFarAway) {
  // Ranges are 9 and 10. Distances: (3, 6): 4/9 + 5/10; (5, 5): 7/9 + 6/10.
  const std::vector<double> front = {1, 10, 3, 6, 5, 5, 10, 0};
  // The ends are equal, so they stay as they are given.
  EXPECT_EQ(loneliest_first({front, 2}), (Numbers{0, 3, 2, 1}));
}

TEST(LoneliestFirst, KeepsTheOrderOfWhatIsEqual) {
  const std::vector<double> front = {2, 2, 2, 2, 2, 2, 2, 2};
  EXPECT_EQ(loneliest_first({front, 2}), (Numbers{0, 3, 1, 2}));
}

TEST(BestFirst, GoesByFrontsAndPutsWhatBreaksLimitsLast) {
  // Fronts: {2}, {0, 3}; 1 and 4 break limits although they are the best of all.
  const std::vector<double> points = {5, 5, 0, 0, 1, 1, 4, 6, 0, 0};
  EXPECT_EQ(best_first({points, 2}, std::vector{0.0, 3.0, 0.0, 0.0, 0.5}),
            (Numbers{2, 0, 3, 4, 1}));
}

TEST(BestFirst, AsksForTheOrderInEachFront) {
  const std::vector<double> points = {1, 4, 3, 3, 2, 2, 4, 1};
  std::vector<std::size_t> sizes;
  const auto backwards = [&](const PointsView& front) {
    sizes.push_back(front.size());
    Numbers order(front.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
    return order;
  };
  EXPECT_EQ(best_first({points, 2}, std::vector<double>(4), backwards), (Numbers{3, 2, 0, 1}));
  EXPECT_EQ(sizes, (Numbers{3, 1}));
}

}  // namespace
}  // namespace fleetfit::search
