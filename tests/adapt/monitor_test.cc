#include "fleetfit/adapt/monitor.h"

#include <gtest/gtest.h>

#include "fleetfit/core/random.h"

namespace fleetfit::adapt {
namespace {

/// Feeds runs of a network that is estimated at 2 ms, one every 2 ms.
class Runs {
 public:
  explicit Runs(LatencyMonitor& monitor) : monitor_(monitor) {}

  void add(double ratio, int count = 1) {
    for (int i = 0; i < count; ++i) monitor_.record(time_ms_ += 2, 2 * ratio, 2);
  }

 private:
  LatencyMonitor& monitor_;
  double time_ms_ = 0;
};

TEST(ParseTail, TakesTheMedianAndPercentiles) {
  EXPECT_EQ(parse_tail("median"), 0.5);
  EXPECT_EQ(parse_tail("p95"), 0.95);
  EXPECT_EQ(parse_tail("p99"), 0.99);
  EXPECT_DOUBLE_EQ(parse_tail("p99.9").value(), 0.999);
  for (const auto* text : {"", "p", "95", "p0", "p100", "p95x", "mean", "p-5", "pnan"}) {
    ASSERT_FALSE(parse_tail(text)) << text;
    EXPECT_EQ(parse_tail(text).error().code, ErrorCode::invalid_input) << text;
  }
}

TEST(Conditions, LimitNetworksByTheRatioIfNothingIsInterrupted) {
  const Conditions twice{.ratio = 2};
  EXPECT_DOUBLE_EQ(twice.longest_within(6), 3);
  EXPECT_DOUBLE_EQ(twice.longest_within(6, 0.5), 3);
}

TEST(Conditions, LimitNetworksToThoseThatAreSeldomInterrupted) {
  // One interruption in 100 ms: of runs of 5 ms 5 % are hit.
  const Conditions some{
      .ratio = 9, .calm_ratio = 1, .interruptions = 0.01, .interruption_ms = 8, .rare = 0.05};
  EXPECT_DOUBLE_EQ(some.longest_within(7), 5);
  EXPECT_DOUBLE_EQ(some.longest_within(7, 0.2), 4);
  EXPECT_DOUBLE_EQ(some.longest_within(4.5), 4.5);
}

TEST(Conditions, DoNotMindInterruptionsThatTheBudgetHasTimeFor) {
  const Conditions many{
      .ratio = 2, .calm_ratio = 1, .interruptions = 0.1, .interruption_ms = 8, .rare = 0.05};
  EXPECT_DOUBLE_EQ(many.longest_within(20), 12);
}

TEST(LatencyMonitor, TellsInterruptionsFromSlowness) {
  LatencyMonitor monitor({.quantile = 0.95, .window_ms = 1e9, .jump = 100});
  Runs runs(monitor);
  for (int i = 0; i < 6; ++i) {
    runs.add(1.5, 9);
    runs.add(6);  // 9 ms more than the others
  }
  const auto& conditions = *monitor.conditions();
  EXPECT_DOUBLE_EQ(conditions.ratio, 6);
  EXPECT_DOUBLE_EQ(conditions.calm_ratio, 1.5);
  EXPECT_DOUBLE_EQ(conditions.interruptions, 6.0 / 120);
  EXPECT_DOUBLE_EQ(conditions.interruption_ms, 9);
  EXPECT_NEAR(conditions.rare, 0.05, 1e-12);
}

TEST(LatencyMonitor, SlownessIsNoInterruption) {
  LatencyMonitor monitor({.quantile = 0.95});
  Runs runs(monitor);
  runs.add(1.0, 250);
  runs.add(5.0, 10);
  EXPECT_EQ(monitor.conditions()->interruptions, 0);
  EXPECT_EQ(monitor.conditions()->calm_ratio, 5);
}

TEST(LatencyMonitor, TellsNothingBeforeItHasSeenEnoughRuns) {
  LatencyMonitor monitor({.first_runs = 8});
  Runs runs(monitor);
  runs.add(1.0, 7);
  EXPECT_FALSE(monitor.conditions());
  runs.add(1.0);
  EXPECT_EQ(monitor.conditions()->ratio, 1.0);
}

TEST(LatencyMonitor, LeavesOutWhatIsNoRatio) {
  LatencyMonitor monitor({.first_runs = 1});
  monitor.record(1, 0, 1);
  monitor.record(2, 1, 0);
  monitor.record(3, -1, 1);
  EXPECT_FALSE(monitor.conditions());
  monitor.record(4, 3, 2);
  EXPECT_EQ(monitor.conditions()->ratio, 1.5);
}

TEST(LatencyMonitor, MedianDoesNotMindAFewSlowRuns) {
  LatencyMonitor monitor;
  Runs runs(monitor);
  for (int i = 0; i < 30; ++i) {
    runs.add(1.0, 4);
    runs.add(9.0);
  }
  EXPECT_EQ(monitor.conditions()->ratio, 1.0);
}

TEST(LatencyMonitor, TailIsThatOfTheWindow) {
  LatencyMonitor monitor({.quantile = 0.95, .window_ms = 1e9, .jump = 100});
  Runs runs(monitor);
  for (int i = 1; i <= 61; ++i) runs.add(i);
  EXPECT_DOUBLE_EQ(monitor.conditions().value().ratio, 58);  // 1 to 61: 95 % of the way is at 58
}

TEST(LatencyMonitor, ForgetsRunsThatAreTooOldButKeepsAFew) {
  LatencyMonitor monitor({.window_ms = 100, .fewest_runs = 16, .jump = 100});
  Runs runs(monitor);
  runs.add(1.0, 200);
  EXPECT_EQ(monitor.runs(), 51u);  // one every 2 ms, both ends of 100 ms
  monitor.record(10'000, 2, 2);
  EXPECT_EQ(monitor.runs(), 16u);
}

TEST(LatencyMonitor, FollowsWithinASmallPartOfALongWindow) {
  LatencyMonitor monitor({.quantile = 0.95, .window_ms = 1e9, .most_runs = 4096, .jump = 100});
  Runs runs(monitor);
  runs.add(1.0, 4000);
  runs.add(3.0, 300);
  EXPECT_EQ(monitor.runs(), 4096u);
  EXPECT_EQ(monitor.conditions()->ratio, 3);
}

TEST(LatencyMonitor, OneSlowRunIsNoTail) {
  LatencyMonitor monitor({.quantile = 0.99, .window_ms = 1});
  Runs runs(monitor);
  runs.add(1.0, 300);
  runs.add(9.0);
  runs.add(1.0, 10);
  EXPECT_EQ(monitor.conditions()->ratio, 1.0);
}

TEST(LatencyMonitor, MedianFollowsALoadWithinTenRuns) {
  LatencyMonitor monitor;
  Runs runs(monitor);
  runs.add(1.0, 250);
  runs.add(1.6, 10);
  EXPECT_EQ(monitor.conditions()->ratio, 1.6);
  runs.add(1.0, 10);
  EXPECT_EQ(monitor.conditions()->ratio, 1.0);
}

TEST(LatencyMonitor, TailFollowsALoadWithinThreeRuns) {
  LatencyMonitor monitor({.quantile = 0.95});
  Runs runs(monitor);
  runs.add(1.0, 250);
  runs.add(1.6, 3);
  EXPECT_EQ(monitor.conditions()->ratio, 1.6);
}

TEST(LatencyMonitor, TailFollowsALoadThatHitsAFewRunsOnly) {
  LatencyMonitor monitor({.quantile = 0.95});
  Runs runs(monitor);
  runs.add(1.0, 250);
  for (int i = 0; i < 6; ++i) {
    runs.add(1.0, 2);
    runs.add(5.0);
  }
  EXPECT_GT(monitor.conditions().value().ratio, 3);
}

TEST(LatencyMonitor, NoiseAloneIsNoChange) {
  LatencyMonitor monitor;
  Runs runs(monitor);
  core::Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    runs.add(1 + 0.05 * random.normal() + (random.chance(0.02) ? 3 : 0));
    if (i > 300) {
      ASSERT_NEAR(monitor.conditions().value().ratio, 1.0, 0.03) << i;
    }
  }
}

TEST(LatencyMonitor, WhatWasLearnedOnOneNetworkHoldsForTheNext) {
  LatencyMonitor monitor;
  for (int i = 0; i < 50; ++i) monitor.record(i, 3.0, 2.0);
  for (int i = 50; i < 60; ++i) monitor.record(i, 1.5, 1.0);
  EXPECT_EQ(monitor.conditions()->ratio, 1.5);
  EXPECT_EQ(monitor.runs(), 60u);
}

}  // namespace
}  // namespace fleetfit::adapt
