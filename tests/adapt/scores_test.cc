#include "adapt/scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fleetfit::adapt {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Scores, TellHowClearlyTheRightClassIsAboveTheOthers) {
  const std::vector<float> scores = {0, 4, 5, 5};
  const std::vector<std::int64_t> labels = {0, 1};
  // 4 below and equal, so that the usual margin is 4 / sqrt(2); the first of two equal scores is
  // the class that is found.
  const auto sums = sum_scores(scores, labels, 2);
  EXPECT_NEAR(sums.confidence, logistic(-3 * std::sqrt(2.0)) + 0.5, 1e-9);
  EXPECT_EQ(sums.hits, 0);
}

TEST(Scores, DoNotDependOnHowSureANetworkIsOfAll) {
  const std::vector<std::int64_t> labels = {0, 1, 1};
  const auto sums = sum_scores(std::vector<float>{3, 1, 0, 2, 1, -2}, labels, 2);
  const auto surer = sum_scores(std::vector<float>{30, 10, 0, 20, 10, -20}, labels, 2);
  EXPECT_EQ(sums.hits, 2);
  EXPECT_NEAR(sums.confidence, surer.confidence, 1e-9);
}

TEST(Scores, MayBeProbabilities) {
  const std::vector<float> scores = {0.2F, 0.8F, 0.0F};
  const std::vector<std::int64_t> labels = {1};
  const auto sums = sum_scores(scores, labels, 3);
  EXPECT_NEAR(sums.confidence, logistic(3), 1e-6);  // the only margin is the usual one
  EXPECT_EQ(sums.hits, 1);
}

TEST(Scores, ImagesWithoutALabelDoNotCount) {
  const std::vector<float> scores = {1, 0, 1, 0};
  const std::vector<std::int64_t> labels = {0};
  EXPECT_EQ(sum_scores(scores, labels, 2).hits, 1);
}

}  // namespace
}  // namespace fleetfit::adapt
