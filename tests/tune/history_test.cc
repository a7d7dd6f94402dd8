#include "fleetfit/tune/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fleetfit::tune {
namespace {

using testing::ElementsAre;
using testing::Optional;

Study study_of(std::vector<Goal> goals) {
  Study study;
  study.inference = {.devices = {"local", "phone"}};
  study.objective.goals = std::move(goals);
  return study;
}

/// 3 s of training and 12 J, accuracy 0.8; 20 ms and 6 mJ on one device, 40 ms and 10 mJ on the
/// other.
Trial some_trial() {
  Trial trial;
  trial.results = {
      {.accuracy = 0.8, .loss = 0.5, .training_s = 3, .training_j = 12, .other = {{"f1", 0.7}}}};
  trial.inference = {
      {.device = "local", .latency_ms = 20, .response_ms = 25, .throughput = 50, .energy_mj = 6},
      {.device = "phone", .latency_ms = 40, .response_ms = 60, .throughput = 25, .energy_mj = 10}};
  return trial;
}

std::optional<std::vector<double>> values(const Study& study, const Trial& trial) {
  return objective_values(study, trial, trial.results[0]);
}

TEST(ObjectiveValues, RatiosAreThoseOfThePaper) {
  const Trial trial = some_trial();
  EXPECT_DOUBLE_EQ(values(study_of({{.metric = Metric::ratio_of_time}}), trial)->at(0),
                   (3 + 0.030) / 0.8);
  EXPECT_DOUBLE_EQ(values(study_of({{.metric = Metric::ratio_of_energy}}), trial)->at(0),
                   (12 + 0.008) / 0.8);
}

TEST(ObjectiveValues, AnAccuracyOfZeroHasAnInfiniteRatio) {
  Trial trial = some_trial();
  trial.results[0].accuracy = 0;
  EXPECT_EQ(values(study_of({{.metric = Metric::ratio_of_time}}), trial)->at(0), INFINITY);
}

TEST(ObjectiveValues, WhatIsMaximizedIsNegative) {
  const Study study = study_of({{.metric = Metric::accuracy, .maximize = true},
                                {.metric = Metric::latency, .device = "phone"},
                                {.metric = Metric::throughput, .maximize = true},
                                {.metric = Metric::other, .name = "f1", .maximize = true}});
  EXPECT_THAT(values(study, some_trial()), Optional(ElementsAre(-0.8, 40, -37.5, -0.7)));
}

TEST(ObjectiveValues, LatencyOfServersIsTheMeanResponse) {
  Study study = study_of({{.metric = Metric::latency, .device = "local"}});
  study.inference->scenario.kind = ScenarioKind::server;
  EXPECT_THAT(values(study, some_trial()), Optional(ElementsAre(25)));
}

TEST(ObjectiveValues, AWeightedSumIsOneNumber) {
  Study study = study_of({{.metric = Metric::accuracy, .maximize = true, .weight = 10},
                          {.metric = Metric::training_time, .weight = 0.5}});
  study.objective.weighted_sum = true;
  EXPECT_THAT(values(study, some_trial()), Optional(ElementsAre(-8 + 1.5)));
}

TEST(ObjectiveValues, AreNotThereUntilInferenceIsKnown) {
  Trial trial = some_trial();
  trial.inference.reset();
  const Study study = study_of({{.metric = Metric::ratio_of_time}});
  EXPECT_EQ(values(study, trial), std::nullopt);
  EXPECT_EQ(lacking_number(study, trial, trial.results[0]), std::nullopt);
  EXPECT_TRUE(needs_inference(study));
  EXPECT_TRUE(values(study_of({{.metric = Metric::loss}}), trial));
  EXPECT_FALSE(needs_inference(study_of({{.metric = Metric::loss}})));
}

TEST(ObjectiveValues, OfHierarchicalStudiesCountTrainingAlone) {
  Study study = study_of({{.metric = Metric::ratio_of_time}});
  study.algorithm.hierarchical = true;
  Trial trial = some_trial();
  EXPECT_DOUBLE_EQ(values(study, trial)->at(0), 3 / 0.8);
  trial.inference.reset();
  EXPECT_DOUBLE_EQ(values(study, trial)->at(0), 3 / 0.8);
  EXPECT_FALSE(needs_inference(study));
}

TEST(LackingNumber, NamesWhatTheResultDoesNotHave) {
  Trial trial = some_trial();
  trial.results[0].loss.reset();
  trial.results[0].training_j.reset();
  trial.inference->at(1).energy_mj.reset();
  const auto lacking = [&](Goal goal) {
    return lacking_number(study_of({std::move(goal)}), trial, trial.results[0]).value_or("");
  };
  EXPECT_EQ(lacking({.metric = Metric::loss}), "the result has no loss, which the objective needs");
  EXPECT_EQ(lacking({.metric = Metric::other, .name = "recall"}),
            "the result has no recall, which the objective needs");
  EXPECT_NE(lacking({.metric = Metric::ratio_of_energy}), "");
  EXPECT_NE(lacking({.metric = Metric::energy}), "");
  EXPECT_EQ(lacking({.metric = Metric::energy, .device = "local"}), "");
}

TEST(Violation, IsRelativeToTheLimitsAndSummedUp) {
  Study study = study_of({{.metric = Metric::accuracy, .maximize = true}});
  study.constraints.accuracy = 0.9;
  study.constraints.devices = {
      {"local", Metric::latency, 16}, {"phone", Metric::latency, 50}, {"phone", Metric::energy, 8}};
  const Trial trial = some_trial();
  EXPECT_DOUBLE_EQ(violation(study, trial, trial.results[0]), 0.1 / 0.9 + 4.0 / 16 + 2.0 / 8);
  EXPECT_DOUBLE_EQ(device_violation(study, *trial.inference), 4.0 / 16 + 2.0 / 8);
  EXPECT_EQ(broken_limit(study, *trial.inference), "latency on local: 20 ms, at most 16 ms");
  study.constraints.devices[0].limit = 20;
  EXPECT_EQ(broken_limit(study, *trial.inference), "energy on phone: 10 mJ, at most 8 mJ");
  study.constraints = {.accuracy = 0.8};
  EXPECT_EQ(violation(study, trial, trial.results[0]), 0);
  EXPECT_EQ(broken_limit(study, *trial.inference), std::nullopt);
}

}  // namespace
}  // namespace fleetfit::tune
