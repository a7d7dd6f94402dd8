#include "fleetfit/adapt/switching.h"

#include <gtest/gtest.h>

#include <vector>

#include "fleetfit/adapt/monitor.h"
#include "fleetfit/core/random.h"

namespace fleetfit::adapt {
namespace {

/// Subnets of 1, 2, 3, … ms, each more accurate than the one before.
std::vector<PoolEntry> pool_of(std::size_t count) {
  std::vector<PoolEntry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    entries.push_back({.subnet = std::string(1, static_cast<char>('a' + i)),
                       .latency_ms = static_cast<double>(i + 1),
                       .accuracy = 0.8 + 0.01 * static_cast<double>(i)});
  }
  return entries;
}

TEST(BestWithin, IsTheMostAccurateThatFits) {
  const auto entries = pool_of(4);
  EXPECT_EQ(best_within(entries, 2.5), 1u);
  EXPECT_EQ(best_within(entries, 3.0), 2u);
  EXPECT_EQ(best_within(entries, 100), 3u);
  EXPECT_FALSE(best_within(entries, 0.9));
}

TEST(BestWithin, TakesTheQuickerOfTwoThatAreAlike) {
  const std::vector<PoolEntry> entries = {{.latency_ms = 2, .accuracy = 0.9},
                                          {.latency_ms = 1, .accuracy = 0.9}};
  EXPECT_EQ(best_within(entries, 5), 1u);
}

TEST(SwitchPolicy, StartsWithTheMostAccurateThatFitsOrElseTheQuickest) {
  EXPECT_EQ(SwitchPolicy(pool_of(4), 3.5).start(), 2u);
  EXPECT_EQ(SwitchPolicy(pool_of(4), 0.5).start(), 0u);
}

TEST(SwitchPolicy, GoesDownAtOnceWhenOverBudget) {
  SwitchPolicy policy(pool_of(4), 3.0);
  EXPECT_FALSE(policy.decide(0, {.ratio = 1.0}, 2).target);
  const auto decision = policy.decide(1, {.ratio = 1.5}, 2);  // 3 ms take 4.5, and 2 ms take just 3
  EXPECT_EQ(decision.target, 1u);
  EXPECT_EQ(decision.reason, SwitchReason::over_budget);
}

TEST(SwitchPolicy, RepeatsADecisionUntilItIsDone) {
  SwitchPolicy policy(pool_of(4), 3.0);
  EXPECT_EQ(policy.decide(0, {.ratio = 1.5}, 2).target, 1u);
  EXPECT_EQ(policy.decide(1, {.ratio = 1.5}, 2).target, 1u);
  policy.switched(1, 2, 1);
  EXPECT_FALSE(policy.decide(2, {.ratio = 1.5}, 1).target);
}

TEST(SwitchPolicy, GoesUpOnlyAfterThereWasRoomForAWhile) {
  SwitchPolicy policy(pool_of(4), 4.5, {.up_after_ms = 500});
  for (double t = 0; t < 500; t += 10)
    ASSERT_FALSE(policy.decide(t, {.ratio = 1.0}, 0).target) << t;
  const auto decision = policy.decide(500, {.ratio = 1.0}, 0);
  EXPECT_EQ(decision.target, 3u);
  EXPECT_EQ(decision.reason, SwitchReason::room);
}

TEST(SwitchPolicy, GoesUpNoFurtherThanThereWasRoomForAllTheWhile) {
  SwitchPolicy policy(pool_of(4), 4.5, {.up_after_ms = 500});
  for (double t = 0; t < 500; t += 10) policy.decide(t, {.ratio = t < 400 ? 1.4 : 1.0}, 0);
  EXPECT_EQ(policy.decide(500, {.ratio = 1.0}, 0).target, 2u);  // 3 ms took 4.2, 4 ms took 5.6
}

TEST(SwitchPolicy, WaitsALittleForABetterOneRatherThanSwitchTwice) {
  SwitchPolicy policy(pool_of(4), 4.5, {.up_after_ms = 500});
  for (double t = 0; t < 600; t += 10)
    ASSERT_FALSE(policy.decide(t, {.ratio = t < 100 ? 1.4 : 1.0}, 0).target) << t;
  EXPECT_EQ(policy.decide(600, {.ratio = 1.0}, 0).target, 3u);
}

TEST(SwitchPolicy, LeavesAMarginWhenItGoesUp) {
  SwitchPolicy policy(pool_of(2), 2.05, {.margin = 0.05, .up_after_ms = 0});
  EXPECT_FALSE(
      policy.decide(0, {.ratio = 1.0}, 0).target);  // 2 ms fit into 2.05, but not into 95 % of it
  EXPECT_EQ(policy.decide(10, {.ratio = 0.97}, 0).target, 1u);
}

TEST(SwitchPolicy, SwitchesNoMoreOftenThanAllowed) {
  SwitchPolicy policy(pool_of(4), 3.0, {.min_interval_ms = 100});
  policy.switched(1000, 2, 1);
  EXPECT_FALSE(policy.decide(1099, {.ratio = 2.0}, 1).target);
  EXPECT_EQ(policy.decide(1100, {.ratio = 2.0}, 1).target, 0u);
}

TEST(SwitchPolicy, WhereNothingFitsTheQuickestRunsAndASearchIsAskedForOnce) {
  SwitchPolicy policy(pool_of(3), 2.0, {.nothing_fits_ms = 1000, .search_again_ms = 5000});
  const auto first = policy.decide(0, {.ratio = 3.0}, 1);
  EXPECT_EQ(first.target, 0u);
  EXPECT_EQ(first.reason, SwitchReason::nothing_fits);
  EXPECT_FALSE(first.fits);
  policy.switched(0, 1, 0);
  int asked = 0;
  for (double t = 10; t <= 5990; t += 10) {
    const auto decision = policy.decide(t, {.ratio = 3.0}, 0);
    EXPECT_FALSE(decision.target);
    if (decision.search_again) {
      EXPECT_EQ(t, 1000);
      ++asked;
    }
  }
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(policy.decide(6000, {.ratio = 3.0}, 0).search_again);
}

TEST(SwitchPolicy, ClimbThatWasTakenBackIsTriedEverMoreSeldom) {
  // The slower subnet takes in truth 1.5 times as long as the pool says.
  SwitchPolicy policy(pool_of(2), 2.5);
  std::size_t current = 0;
  std::vector<double> climbs;
  for (double t = 0; t < 30'000; t += 5) {
    const auto decision = policy.decide(t, {.ratio = current == 1 ? 1.5 : 1.0}, current);
    if (!decision.target) continue;
    if (*decision.target == 1) climbs.push_back(t);
    policy.switched(t, current, *decision.target);
    current = *decision.target;
  }
  ASSERT_GE(climbs.size(), 4u);
  EXPECT_LE(climbs.size(), 6u);
  for (std::size_t i = 2; i < climbs.size(); ++i)
    EXPECT_GT(climbs[i] - climbs[i - 1], 1.3 * (climbs[i - 1] - climbs[i - 2]));
}

TEST(SwitchPolicy, ClimbThatWasTakenBackIsTriedAgainWhenConditionsGetBetter) {
  SwitchPolicy policy(pool_of(2), 2.5);
  policy.decide(0, {.ratio = 1.15}, 0);
  EXPECT_EQ(policy.decide(500, {.ratio = 1.15}, 0).target, 1u);
  policy.switched(500, 0, 1);
  EXPECT_EQ(policy.decide(700, {.ratio = 1.3}, 1).target, 0u);
  policy.switched(700, 1, 0);
  EXPECT_FALSE(policy.decide(750, {.ratio = 1.15}, 0).target);
  EXPECT_FALSE(policy.decide(1400, {.ratio = 1.15}, 0).target);
  EXPECT_FALSE(policy.decide(1410, {.ratio = 0.9}, 0).target);
  EXPECT_EQ(policy.decide(1910, {.ratio = 0.9}, 0).target,
            1u);  // half a second of room is enough again
}

/// Requests one after the other on a device that takes `actual_ms` (a time, an estimate) for them;
/// gives the times of switches and what ran.
struct Trace {
  std::vector<double> switches_ms;
  std::vector<std::size_t> ran;
  std::vector<double> took_ms;
  std::vector<double> ended_ms;
};

template <class Device>
Trace simulate(SwitchPolicy& policy, double until_ms, const MonitorOptions& monitor_options,
               Device actual_ms) {
  Trace trace;
  LatencyMonitor monitor(monitor_options);
  std::size_t current = policy.start();
  for (double t = 0; t < until_ms;) {
    const double estimated = policy.entries()[current].latency_ms;
    const double actual = actual_ms(t, estimated);
    t += actual;
    monitor.record(t, actual, estimated);
    trace.ran.push_back(current);
    trace.took_ms.push_back(actual);
    trace.ended_ms.push_back(t);
    if (!monitor.conditions()) continue;
    const auto decision = policy.decide(t, *monitor.conditions(), current);
    if (!decision.target) continue;
    policy.switched(t, current, *decision.target);
    current = *decision.target;
    trace.switches_ms.push_back(t);
  }
  return trace;
}

std::size_t ran_at(const Trace& trace, double time_ms) {
  std::size_t i = 0;
  while (i + 1 < trace.ended_ms.size() && trace.ended_ms[i] < time_ms) ++i;
  return trace.ran[i];
}

class LoadThatComesAndGoes : public testing::TestWithParam<double> {};

TEST_P(LoadThatComesAndGoes, IsFollowedDownWithinFewRequestsAndUpWithinAboutASecond) {
  SwitchPolicy policy(pool_of(6), 5.5);
  const auto trace = simulate(policy, 12'000, {.quantile = GetParam()}, [](double t, double ms) {
    return t > 3000 && t < 8000 ? 2 * ms : ms;
  });
  EXPECT_EQ(ran_at(trace, 2900), 4u);
  EXPECT_EQ(ran_at(trace, 3000 + 13 * 10), 1u);  // 13 requests of the slow subnet
  EXPECT_EQ(ran_at(trace, 7900), 1u);
  EXPECT_EQ(ran_at(trace, 9100), 4u);
  EXPECT_EQ(ran_at(trace, 11'900), 4u);
  EXPECT_EQ(trace.switches_ms.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Tails, LoadThatComesAndGoes, testing::Values(0.5, 0.95, 0.99));

TEST(SwitchPolicy, DoesNotFlapUnderNoise) {
  SwitchPolicy policy(pool_of(6), 5.5);
  core::Random random(3);
  const auto trace = simulate(policy, 60'000, {}, [&](double, double ms) {
    return ms * std::max(0.5, 1 + 0.08 * random.normal() + (random.chance(0.03) ? 4 : 0));
  });
  EXPECT_LE(trace.switches_ms.size(), 2u);
}

TEST(SwitchPolicy, DoesNotFlapUnderNoiseWhenTheTailIsWatched) {
  SwitchPolicy policy(pool_of(6), 5.5);
  core::Random random(4);
  const auto trace = simulate(policy, 60'000, {.quantile = 0.95}, [&](double, double ms) {
    return ms * std::max(0.5, 1 + 0.02 * random.normal() + (random.chance(0.01) ? 4 : 0));
  });
  EXPECT_LE(trace.switches_ms.size(), 4u);
}

/// Takes the CPU away for 40 ms after every 60 ms of work in the middle of a trace.
class Interruptions {
 public:
  double operator()(double time_ms, double ms) {
    if (time_ms < kFirst || time_ms > kLast) return ms;
    worked_ms_ += ms;
    if (worked_ms_ < 60) return ms;
    worked_ms_ -= 60;
    return ms + 40;
  }

  static constexpr double kFirst = 3000;
  static constexpr double kLast = 23'000;

 private:
  double worked_ms_ = 0;
};

TEST(SwitchPolicy, FindsASubnetThatIsSeldomInterruptedAndStaysThere) {
  SwitchPolicy policy(pool_of(6), 5.5);
  const auto trace = simulate(policy, 26'000, {.quantile = 0.95}, Interruptions());
  EXPECT_EQ(ran_at(trace, 2900), 4u);
  EXPECT_EQ(ran_at(trace, 4000),
            1u);  // of the runs of 5 ms one of 12 is too late, of 2 ms one of 30
  EXPECT_EQ(ran_at(trace, 24'200), 4u);
  EXPECT_LE(trace.switches_ms.size(), 12u);  // it dares every five seconds and more
  double in_time = 0;
  double all = 0;
  for (std::size_t i = 0; i < trace.ran.size(); ++i) {
    if (trace.ended_ms[i] < Interruptions::kFirst + 1000) continue;
    if (trace.ended_ms[i] > Interruptions::kLast) break;
    all += 1;
    if (trace.took_ms[i] <= policy.budget_ms()) in_time += 1;
  }
  EXPECT_GE(in_time / all, 0.95);
}

TEST(SwitchPolicy, DaresToClimbThoughRunsAreInterrupted) {
  // Every 30th run is slow, whatever its length.
  SwitchPolicy policy(pool_of(6), 5.5);
  const Conditions conditions{
      .ratio = 1.0, .interruptions = 1.0 / 30, .interruption_ms = 20, .rare = 0.05};
  policy.switched(0, 4, 0);
  for (double t = 0; t < 5000; t += 10) ASSERT_FALSE(policy.decide(t, conditions, 0).target) << t;
  EXPECT_FALSE(policy.decide(5010, conditions, 0).target);
  EXPECT_EQ(policy.decide(5600, conditions, 0).target, 4u);
}

TEST(SwitchPolicy, HoldsItsPromisesOnRandomTraces) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    core::Random random(seed);
    std::vector<PoolEntry> entries(1 + random.below(8));
    for (auto& entry : entries)
      entry = {.latency_ms = random.uniform(0.5, 5), .accuracy = random.uniform()};
    const double budget = random.uniform(0.3, 6);
    const SwitchOptions options{.up_after_ms = random.uniform(0, 600),
                                .min_interval_ms = random.uniform(0, 300)};
    SwitchPolicy policy(entries, budget, options);
    std::size_t current = policy.start();
    double last_switch = -1e9;
    double ratio = 1;
    for (double t = 0; t < 5000; t += random.uniform(0.5, 20)) {
      ratio = std::clamp(ratio * random.uniform(0.8, 1.25), 0.2, 8.0);
      const auto decision = policy.decide(t, {.ratio = ratio}, current);
      const auto fitting = best_within(entries, budget / ratio);
      if (!decision.target) continue;
      ASSERT_NE(*decision.target, current);
      ASSERT_GE(t - last_switch, options.min_interval_ms);
      if (fitting) {
        ASSERT_LE(entries[*decision.target].latency_ms * ratio, budget * (1 + 1e-12));
      } else {
        ASSERT_EQ(*decision.target, quickest(entries));
      }
      policy.switched(t, current, *decision.target);
      current = *decision.target;
      last_switch = t;
    }
  }
}

}  // namespace
}  // namespace fleetfit::adapt
