#include "fleetfit/measure/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "fleetfit/core/random.h"

namespace fleetfit::measure {
namespace {

using core::Interval;
using core::Random;

std::vector<double> drawn(int size, const std::function<double()>& draw) {
  std::vector<double> series(static_cast<std::size_t>(size));
  for (double& value : series) value = draw();
  return series;
}

// The share of simulated series whose interval holds the true value.
double coverage(const std::function<std::vector<double>(Random&)>& series_of,
                const std::function<Interval(std::span<const double>)>& interval_of, double truth) {
  constexpr int kSeries = 2000;
  int inside = 0;
  for (int i = 0; i < kSeries; ++i) {
    Random random = Random(7).split(static_cast<std::uint64_t>(i));
    const auto interval = interval_of(series_of(random));
    inside += interval.low <= truth && truth <= interval.high ? 1 : 0;
  }
  return static_cast<double>(inside) / kSeries;
}

// Neighbours are correlated by `rho`; the median and the mean are 10, the deviation 1.
std::vector<double> autoregressive(Random& random, int size, double rho) {
  double state = random.normal();
  return drawn(size, [&] {
    state = rho * state + std::sqrt(1 - rho * rho) * random.normal();
    return 10 + state;
  });
}

TEST(MedianInterval, IsMadeOfTheOrderStatisticsOfTheBinomialDistribution) {
  // 1 to 20 in an order without correlation. Tables of the sign test give ranks 6 and 15 for n=20.
  const std::vector<double> series = {11, 3,  18, 7,  14, 1,  20, 9,  5,  16,
                                      2,  12, 8,  19, 4,  15, 6,  17, 10, 13};
  EXPECT_EQ(median_interval(series), (Interval{6, 15}));
}

TEST(MedianInterval, HoldsTheMedianOf95OutOf100NormalSamples) {
  for (const int size : {10, 30, 100, 500}) {
    const double share = coverage(
        [&](Random& r) { return drawn(size, [&] { return r.normal(); }); }, median_interval, 0);
    EXPECT_GE(share, 0.94) << size;
    EXPECT_LE(share, size == 10 ? 1 : 0.99) << size;
  }
}

TEST(MedianInterval, HoldsTheMedianOfSkewedSamples) {
  const auto skewed = [](Random& r) { return drawn(100, [&] { return std::exp(r.normal()); }); };
  EXPECT_GE(coverage(skewed, median_interval, 1), 0.94);
}

TEST(MedianInterval, HoldsTheMedianOfBimodalSamples) {
  // 30 % of the runs are in the slow group: the median is at the quantile 0.5 / 0.7 of the fast.
  const auto bimodal = [](Random& r) {
    return drawn(100, [&] { return (r.chance(0.3) ? 90 : 10) + r.uniform(); });
  };
  EXPECT_GE(coverage(bimodal, median_interval, 10 + 0.5 / 0.7), 0.94);
}

TEST(MedianInterval, IsWiderWhereNeighboursResembleEachOther) {
  const auto slow_phases = [](Random& r) { return autoregressive(r, 500, 0.9); };
  EXPECT_GE(coverage(slow_phases, median_interval, 10), 0.90);
  // What an interval for independent runs would promise is far from true here.
  const auto naive = [](std::span<const double> series) {
    std::vector<double> sorted(series.begin(), series.end());
    std::ranges::sort(sorted);
    return Interval{sorted[228], sorted[271]};
  };
  EXPECT_LE(coverage(slow_phases, naive, 10), 0.60);
}

TEST(MeanInterval, HoldsTheMean) {
  const auto independent = [](Random& r) { return autoregressive(r, 100, 0); };
  EXPECT_GE(coverage(independent, mean_interval, 10), 0.93);
  const auto slow_phases = [](Random& r) { return autoregressive(r, 500, 0.8); };
  EXPECT_GE(coverage(slow_phases, mean_interval, 10), 0.90);
}

TEST(CorrelationLength, IsThatOfAnAutoregressiveSeries) {
  // (1 + rho) / (1 - rho) in theory: 1, 3 and 9.
  for (const auto& [rho, expected] : {std::pair(0.0, 1.0), {0.5, 3.0}, {0.8, 9.0}}) {
    double sum = 0;
    for (std::uint64_t i = 0; i < 50; ++i) {
      Random random = Random(3).split(i);
      sum += correlation_length(autoregressive(random, 2000, rho));
    }
    EXPECT_NEAR(sum / 50, expected, 0.15 * expected) << rho;
  }
}

TEST(CorrelationLength, IsOneForEqualValuesAndForAlternatingOnes) {
  EXPECT_EQ(correlation_length(std::vector<double>(50, 3.0)), 1);
  std::vector<double> alternating;
  for (int i = 0; i < 50; ++i) alternating.push_back(i % 2);
  EXPECT_EQ(correlation_length(alternating), 1);
}

TEST(RelativeHalfWidth, IsAShareOfTheCenter) {
  EXPECT_DOUBLE_EQ(relative_half_width({9, 11}, 10), 0.1);
  EXPECT_EQ(relative_half_width({0, 0}, 0), 0);
  EXPECT_EQ(relative_half_width({0, 1}, 0), std::numeric_limits<double>::infinity());
}

TEST(Outliers, AreFarFromTheMedianByTheMad) {
  // Median 10, MAD 0.1: 5 deviations are 0.74.
  const std::vector<double> series = {9.9, 10, 10.1, 9.8, 10.2, 9.9, 10.1, 10, 10.7, 10.8, 2};
  EXPECT_EQ(count_outliers(series), 2);
}

TEST(Outliers, AreNotMadeByAFractionOfAPercent) {
  std::vector<double> series(100, 10.0);
  series[3] = 10.05;
  series[4] = 10.2;
  EXPECT_EQ(count_outliers(series), 1);
}

TEST(DriftOf, TellsHowMuchSlowerTheSecondHalfIs) {
  std::vector<double> series;
  for (int i = 0; i < 40; ++i) series.push_back((i < 20 ? 10.0 : 11.0) + 0.01 * (i * 7 % 5));
  const auto drift = drift_of(series);
  EXPECT_TRUE(drift.significant);
  EXPECT_NEAR(drift.relative, 0.1, 0.001);
}

TEST(DriftOf, IsRarelySignificantWithoutDrift) {
  int significant = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    Random random = Random(5).split(i);
    significant += drift_of(autoregressive(random, 200, 0.5)).significant ? 1 : 0;
  }
  EXPECT_LE(significant, 25);
}

TEST(DriftOf, SaysNothingOfAFewRuns) {
  EXPECT_EQ(drift_of(std::vector<double>{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}), Drift{});
}

TEST(IsBimodal, KnowsThrottledRunsFromOrdinaryNoise) {
  Random random(11);
  const auto throttled =
      drawn(200, [&] { return (random.chance(0.2) ? 85 : 10) + random.uniform(); });
  EXPECT_TRUE(is_bimodal(throttled));
  EXPECT_FALSE(is_bimodal(drawn(200, [&] { return 10 + random.normal(); })));
  EXPECT_FALSE(is_bimodal(drawn(200, [&] { return std::exp(random.normal()); })));
  EXPECT_FALSE(is_bimodal(drawn(200, [&] { return random.uniform(1, 2); })));
  auto one_hiccup = std::vector<double>(200, 10.0);
  one_hiccup[50] = 100;
  EXPECT_FALSE(is_bimodal(one_hiccup));
  EXPECT_FALSE(is_bimodal(std::vector<double>(200, 10.0)));
}

TEST(IsSteady, NeedsFourRequestsThatAgree) {
  EXPECT_FALSE(is_steady(std::vector<double>{10, 10, 10}, 0.04));
  EXPECT_TRUE(is_steady(std::vector<double>{30, 10, 10.1, 10.2, 10}, 0.04));
  EXPECT_FALSE(is_steady(std::vector<double>{10, 10.1, 10.5, 10}, 0.04));
}

TEST(IsSteady, DoesNotTakeASlowFallForRest) {
  EXPECT_FALSE(is_steady(std::vector<double>{10.3, 10.2, 10.1, 10.0}, 0.04));
  EXPECT_TRUE(is_steady(std::vector<double>{10.003, 10.002, 10.001, 10.0}, 0.04));
}

}  // namespace
}  // namespace fleetfit::measure
