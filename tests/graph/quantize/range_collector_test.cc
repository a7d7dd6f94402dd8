#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::graph {
namespace {

using Floats = std::vector<float>;

TEST(RangeCollector, FindsExtremesOverAllBatchesOfEachTensor) {
  RangeCollector collector;
  collector.observe(3, Floats{1, -2, 0.5F});
  collector.observe(3, Floats{4, 0});
  collector.observe(5, Floats{7});
  collector.observe(6, Floats{});
  EXPECT_EQ(collector.ranges(), (Ranges{{3, {-2, 4}}, {5, {7, 7}}}));
}

TEST(RangeCollector, PercentileLeavesOutTheRarestOnEitherSide) {
  // 0 to 999, each once, and one value far out on each side. Of 1002 values 1 % is 10, so five go
  // on each side: -500, 0 to 3, and 996 to 999, 5000. A bin is 2 * 8192 / 8192 = 2 wide.
  RangeCollector collector({.method = RangeMethod::percentile, .percentile = 99});
  Floats values{-500, 5000};
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i));
  collector.observe(0, values);
  const auto range = collector.ranges().at(0);
  EXPECT_NEAR(range.low, 4, 2);
  EXPECT_NEAR(range.high, 995, 2);
}

TEST(RangeCollector, PercentileKeepsTheZerosOfRelu) {
  RangeCollector collector({.method = RangeMethod::percentile, .percentile = 90});
  Floats values(60, 0.0F);
  for (int i = 1; i <= 40; ++i) values.push_back(static_cast<float>(i));
  collector.observe(0, values);
  EXPECT_EQ(collector.ranges().at(0).low, 0);
  EXPECT_NEAR(collector.ranges().at(0).high, 35, 0.1);  // five of a hundred are above
}

TEST(RangeCollector, PercentileDoesNotDependOnTheOrderOfBatches) {
  core::Random random(5);
  std::vector<Floats> batches;
  for (const double size : {1e-3, 40.0, 1.0, 3e4, 0.0}) {
    Floats batch;
    for (int i = 0; i < 500; ++i) batch.push_back(static_cast<float>(size * random.normal()));
    batches.push_back(batch);
  }
  const RangeOptions options{.method = RangeMethod::percentile, .percentile = 97};
  RangeCollector forwards(options);
  RangeCollector backwards(options);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    forwards.observe(1, batches[i]);
    backwards.observe(1, batches[batches.size() - 1 - i]);
  }
  EXPECT_EQ(forwards.ranges(), backwards.ranges());
}

TEST(RangeCollector, PercentileOfOneValueIsThatValue) {
  RangeCollector collector({.method = RangeMethod::percentile});
  collector.observe(0, Floats{-3.25F, -3.25F});
  EXPECT_EQ(collector.ranges().at(0), (ValueRange{-3.25F, -3.25F}));
}

TEST(RangeCollector, MarksTensorsThatHeldNumbersWithoutARange) {
  for (const auto method : {RangeMethod::min_max, RangeMethod::percentile}) {
    RangeCollector collector({.method = method});
    collector.observe(0, Floats{1, std::numeric_limits<float>::infinity()});
    collector.observe(0, Floats{2});
    collector.observe(1, Floats{std::nanf(""), 1});
    for (const auto& [tensor, range] : collector.ranges()) {
      EXPECT_TRUE(std::isnan(range.low)) << tensor;
      EXPECT_TRUE(std::isnan(range.high)) << tensor;
    }
  }
}

}  // namespace
}  // namespace fleetfit::graph
