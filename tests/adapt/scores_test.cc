#include "adapt/search/scores.h"

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
  const auto sums = sum_scores(scores, labels, {.classes = 2});
  EXPECT_NEAR(sums.confidence, logistic(-3 * std::sqrt(2.0)) + 0.5, 1e-9);
  EXPECT_EQ(sums.hits, 0);
}

TEST(Scores, DoNotDependOnHowSureANetworkIsOfAll) {
  const std::vector<std::int64_t> labels = {0, 1, 1};
  const auto sums = sum_scores(std::vector<float>{3, 1, 0, 2, 1, -2}, labels, {.classes = 2});
  const auto surer = sum_scores(std::vector<float>{30, 10, 0, 20, 10, -20}, labels, {.classes = 2});
  EXPECT_EQ(sums.hits, 2);
  EXPECT_NEAR(sums.confidence, surer.confidence, 1e-9);
}

TEST(Scores, MayBeProbabilities) {
  const std::vector<float> scores = {0.2F, 0.8F, 0.0F};
  const std::vector<std::int64_t> labels = {1};
  const auto sums = sum_scores(scores, labels, {.classes = 3});
  EXPECT_NEAR(sums.confidence, logistic(3), 1e-6);  // the only margin is the usual one
  EXPECT_EQ(sums.hits, 1);
}

TEST(Scores, ImagesWithoutALabelDoNotCount) {
  const std::vector<float> scores = {1, 0, 1, 0};
  const std::vector<std::int64_t> labels = {0};
  EXPECT_EQ(sum_scores(scores, labels, {.classes = 2}).hits, 1);
}

TEST(Scores, MayBeOfEachPixel) {
  // Two images of three pixels and two classes: the first class of all pixels, then the second.
  const std::vector<float> scores = {1, 0, 5, 0, 2, 3, /**/ 0, 0, 1, 4, 4, 0};
  const ScoreForm form{.classes = 2, .pixels = 3};
  EXPECT_EQ(best_classes(scores, form, 6), (std::vector<std::int64_t>{0, 1, 0, 1, 1, 0}));
  const std::vector<std::int64_t> labels = {0, 1, 1, 1, 0, 0};
  const auto sums = sum_scores(scores, labels, form);
  EXPECT_EQ(sums.hits, 4);
  EXPECT_EQ(sums.labels, 6U);
  // The same, pixel by pixel.
  const std::vector<float> plain = {1, 0, 0, 2, 5, 3, 0, 4, 0, 4, 1, 0};
  EXPECT_NEAR(sums.confidence, sum_scores(plain, labels, {.classes = 2}).confidence, 1e-12);
}

}  // namespace
}  // namespace fleetfit::adapt
