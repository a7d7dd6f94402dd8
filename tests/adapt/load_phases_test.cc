#include "adapt/load_phases.h"

#include <gtest/gtest.h>

#include "fleetfit/core/random.h"

namespace fleetfit::adapt {
namespace {

/// Requests every ten milliseconds with times of this ratio, more or less.
class Requests {
 public:
  void serve(double seconds, double ratio, bool within_budget, double accuracy = 0.9) {
    for (int i = 0; i < static_cast<int>(seconds * 100); ++i) {
      phases.record({.time_s = static_cast<double>(number_++) / 100 + 0.001,
                     .ratio = ratio * random_.uniform(0.9, 1.1),
                     .within_budget = within_budget,
                     .accuracy = accuracy,
                     .subnet = within_budget ? "a" : "b"});
    }
  }

  LoadPhases phases;

 private:
  int number_ = 0;
  core::Random random_{1};
};

TEST(LoadPhases, AreOneWhileNothingChanges) {
  Requests requests;
  requests.serve(5, 1.2, true);
  const auto report = requests.phases.report();
  EXPECT_EQ(report.changes, 0U);
  ASSERT_EQ(report.phases.size(), 1U);
  EXPECT_EQ(report.phases[0].requests, 500U);
  EXPECT_EQ(report.settled, 400U);  // without the first second
  EXPECT_EQ(report.settled_within_budget, 400U);
  EXPECT_NEAR(report.phases[0].ratio, 1.2, 0.05);
  EXPECT_EQ(accuracy_returned(report), std::nullopt);
}

TEST(LoadPhases, LeaveOutTheFirstSecondAfterAChange) {
  Requests requests;
  requests.serve(3, 1, true);
  requests.serve(0.8, 2, false);  // it takes so long to find a subnet that fits
  requests.serve(3.2, 2, true, 0.8);
  const auto report = requests.phases.report();
  EXPECT_EQ(report.changes, 1U);
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[1].start_s, 3);
  EXPECT_EQ(report.phases[1].requests, 400U);
  EXPECT_EQ(report.phases[1].within_budget, 320U);
  EXPECT_EQ(report.phases[1].settled, 300U);
  EXPECT_EQ(report.phases[1].settled_within_budget, 300U);
  EXPECT_NEAR(report.phases[1].accuracy, 0.8, 1e-9);
  EXPECT_EQ(report.settled, 200U + 300U);
}

TEST(LoadPhases, CountWhatIsStillTooSlowLater) {
  Requests requests;
  requests.serve(3, 1, true);
  requests.serve(1.5, 2, false);
  requests.serve(1.5, 2, true);
  const auto report = requests.phases.report();
  EXPECT_EQ(report.settled, 200U + 200U);
  EXPECT_EQ(report.settled_within_budget, 200U + 150U);
}

TEST(LoadPhases, DoNotBeginWithASingleHiccup) {
  Requests requests;
  requests.serve(3, 1, true);
  requests.serve(0.2, 5, false);
  requests.serve(3, 1, true);
  const auto report = requests.phases.report();
  EXPECT_EQ(report.changes, 0U);
  EXPECT_EQ(report.settled - report.settled_within_budget, 20U) << "hiccups count";
}

TEST(LoadPhases, TellWhetherAccuracyReturns) {
  for (const double last : {0.9, 0.85}) {
    Requests requests;
    requests.serve(3, 1, true, 0.9);
    requests.serve(3, 2, true, 0.8);
    requests.serve(3, 1, true, last);
    EXPECT_EQ(accuracy_returned(requests.phases.report()), last == 0.9);
  }
  Requests rising;
  rising.serve(3, 1, true);
  rising.serve(3, 2, true);
  rising.serve(3, 4, true);
  EXPECT_EQ(accuracy_returned(rising.phases.report()), std::nullopt) << "the load stays";
}

TEST(LoadPhases, AreKeptForTheLastOnesAlone) {
  Requests requests;
  for (int i = 0; i < 120; ++i) requests.serve(1.5, i % 2 == 0 ? 1 : 2, true);
  const auto report = requests.phases.report();
  EXPECT_EQ(report.changes, 119U);
  EXPECT_EQ(report.phases.size(), 100U);
  EXPECT_EQ(report.settled, 120U * 50);
}

}  // namespace
}  // namespace fleetfit::adapt
