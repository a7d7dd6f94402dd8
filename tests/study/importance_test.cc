#include "study/importance.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fleetfit::study {
namespace {

constexpr std::string_view kStudy = R"(name: s
parameters: {training: {choice: {values: [a, b]}, number: {range: [0, 100]}}}
objective: {maximize: accuracy}
budget: {kind: epochs, max_epochs: 1}
algorithm: {model: random}
)";

SeenTrial seen(std::size_t number, double choice, double value, double accuracy) {
  SeenTrial one;
  one.trial = {.number = number, .point = {choice, value}};
  one.trial.results = {{.accuracy = accuracy}};
  return one;
}

TEST(Importance, IsTheCorrelationRatioOfRanksWithoutChance) {
  const auto study = tune::parse_study(kStudy, "s").value();
  std::vector<SeenTrial> trials;
  for (std::size_t i = 0; i < 10; ++i) {
    const auto place = static_cast<double>(i);
    trials.push_back(seen(i, i < 5 ? 0 : 1, 50, 0.9 - 0.01 * place));
  }
  const auto report = importance_of(study, trials);
  ASSERT_EQ(report.parameters.size(), 2U);
  // Ranks 1 to 10: squares around the mean 82.5, between {1…5} and {6…10} 62.5, so inside 20 with
  // 8 degrees of freedom: 1 - (20 / 8) / (82.5 / 9).
  EXPECT_EQ(report.parameters[0].parameter, 0U);
  EXPECT_NEAR(report.parameters[0].share, 1 - 2.5 / (82.5 / 9), 1e-12);
  EXPECT_EQ(report.parameters[0].best_at, "a");
  EXPECT_EQ(report.parameters[1].share, 0);  // always the same value
}

TEST(Importance, FindsTheBestPartOfARange) {
  const auto study = tune::parse_study(kStudy, "s").value();
  std::vector<SeenTrial> trials;
  for (std::size_t i = 0; i < 80; ++i) {
    const auto value = static_cast<double>(i);
    trials.push_back(seen(i, static_cast<double>(i % 2), value, 1 - std::abs(value - 44.5) / 100));
  }
  const auto report = importance_of(study, trials);
  EXPECT_EQ(report.parameters[0].parameter, 1U);
  EXPECT_GT(report.parameters[0].share, 0.9);
  EXPECT_EQ(report.parameters[0].best_at, "40 to 49");  // eight groups of ten
  EXPECT_LT(report.parameters[1].share, 0.05);
}

TEST(Importance, OfFewTrialsIsNotTold) {
  const auto study = tune::parse_study(kStudy, "s").value();
  std::vector<SeenTrial> trials;
  for (std::size_t i = 0; i < 9; ++i) trials.push_back(seen(i, 0, 1, 0.5));
  EXPECT_TRUE(importance_of(study, trials).parameters.empty());
}

}  // namespace
}  // namespace fleetfit::study
