#include "adapt/scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace fleetfit::adapt {
namespace {

TEST(Scores, AreMadeProbabilitiesIfTheyAreNone) {
  const std::vector<float> scores = {0, static_cast<float>(std::log(3.0)), 5, 5};
  const std::vector<std::int64_t> labels = {0, 1};
  // 1 of 4, and half; the first of two equal scores is the class that is found.
  const auto sums = sum_scores(scores, labels, 2);
  EXPECT_NEAR(sums.confidence, 0.25 + 0.5, 1e-6);
  EXPECT_EQ(sums.hits, 0);
}

TEST(Scores, AreTakenAsTheyAreIfTheyAreProbabilities) {
  const std::vector<float> scores = {0.2F, 0.8F, 0.0F};
  const std::vector<std::int64_t> labels = {1};
  const auto sums = sum_scores(scores, labels, 3);
  EXPECT_NEAR(sums.confidence, 0.8, 1e-6);
  EXPECT_EQ(sums.hits, 1);
}

TEST(Scores, ImagesWithoutALabelDoNotCount) {
  const std::vector<float> scores = {1, 0, 1, 0};
  const std::vector<std::int64_t> labels = {0};
  EXPECT_EQ(sum_scores(scores, labels, 2).hits, 1);
}

}  // namespace
}  // namespace fleetfit::adapt
