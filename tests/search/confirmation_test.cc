#include "fleetfit/search/confirmation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fleetfit/search/cover.h"

namespace fleetfit::search {
namespace {

TEST(NextToConfirm, TakesASafeDesignAsLongAsNothingIsSure) {
  // 0.99 x 90 = 89.1 is more than 0.5 x 95 = 47.5 and 0.9 x 92 = 82.8.
  const std::vector<Prospect> prospects = {{95, 0.5}, {90, 0.99}, {92, 0.9}};
  EXPECT_EQ(next_to_confirm(prospects, {}), 1U);
}

TEST(NextToConfirm, IsBolderTheMoreIsSure) {
  const std::vector<Prospect> prospects = {{95, 0.5}, {90, 0.99}, {92, 0.9}};
  // Gains over 90: 2.5 and 1.8; over 80: 7.5, 9.9 and 10.8.
  EXPECT_EQ(next_to_confirm(prospects, {.sure = 90}), 0U);
  EXPECT_EQ(next_to_confirm(prospects, {.sure = 80}), 2U);
}

TEST(NextToConfirm, EndsWhenNothingPromisesMore) {
  const std::vector<Prospect> prospects = {{95, 0.001}, {90, 1}};
  EXPECT_EQ(next_to_confirm(prospects, {.sure = 90, .least_gain = 0.01}), std::nullopt);
  EXPECT_EQ(next_to_confirm(prospects, {.sure = 90, .least_gain = 0.001}), 0U);
  EXPECT_EQ(next_to_confirm({}, {}), std::nullopt);
}

TEST(NextToConfirm, LeavesOutDesignsOfUnknownAccuracy) {
  EXPECT_EQ(next_to_confirm(std::vector<Prospect>{{NAN, 1}, {1, 0.5}}, {}), 1U);
}

TEST(ProbabilityWithin, IsThatOfTheNormalDistribution) {
  EXPECT_DOUBLE_EQ(probability_within({.value = 10, .deviation = 2}, 10), 0.5);
  EXPECT_NEAR(probability_within({.value = 10, .deviation = 2}, 12), 0.841344746, 1e-9);
  EXPECT_NEAR(probability_within({.value = 10, .deviation = 2}, 6.71), 0.0499849, 1e-6);
}

TEST(ProbabilityWithin, OfASureCostIsAllOrNothing) {
  EXPECT_EQ(probability_within({.value = 10}, 10), 1);
  EXPECT_EQ(probability_within({.value = 10}, 9.99), 0);
}

TEST(Doubt, GrowsWithSurprisesAndDoesNotFallBelowOne) {
  Doubt doubt;
  EXPECT_EQ(doubt.factor(), 1);
  doubt.see({.value = 10, .deviation = 1}, 10);
  EXPECT_EQ(doubt.factor(), 1);
  doubt.see({.value = 10, .deviation = 1}, 13);  // (4 + 0 + 9) / (4 + 2)
  EXPECT_DOUBLE_EQ(doubt.factor(), std::sqrt(13.0 / 6));
}

TEST(FewestThatServeAll, BeatsTakingTheLargestFirst) {
  // The largest serves four of six, and leaves two that need a model each; two of three suffice.
  const std::vector<Serving> all = {{.serves = {false, true, true, true, true, false}},
                                    {.serves = {true, true, true, false, false, false}},
                                    {.serves = {false, false, false, true, true, true}}};
  EXPECT_EQ(fewest_that_serve_all(all), (std::vector<std::size_t>{1, 2}));
}

TEST(FewestThatServeAll, PrefersWhatIsWorthMore) {
  const std::vector<Serving> all = {{.serves = {true, true}, .worth = 1},
                                    {.serves = {true, true}, .worth = 3},
                                    {.serves = {true, true}, .worth = 2}};
  EXPECT_EQ(fewest_that_serve_all(all), (std::vector<std::size_t>{1}));
}

TEST(FewestThatServeAll, LeavesOutWhatNobodyServes) {
  EXPECT_EQ(fewest_that_serve_all({{.serves = {true, false}}}), (std::vector<std::size_t>{0}));
  EXPECT_TRUE(fewest_that_serve_all({}).empty());
  EXPECT_TRUE(fewest_that_serve_all({{.serves = {false}}}).empty());
}

}  // namespace
}  // namespace fleetfit::search
