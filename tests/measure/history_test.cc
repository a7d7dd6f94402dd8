#include "fleetfit/measure/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fleetfit::measure {
namespace {

using testing::HasSubstr;

constexpr std::chrono::system_clock::time_point kEarlier{std::chrono::seconds(1'700'000'000)};

EarlierMeasurement earlier(const std::string& model, double median_ms) {
  return {.model = model,
          .median_ms = median_ms,
          .ci95_ms = {median_ms * 0.99, median_ms * 1.01},
          .started = kEarlier};
}

// Settled at `median_ms` with an interval of 1 % to both sides.
Measurement settled(double median_ms) {
  Measurement measurement{.status = MeasurementStatus::ok};
  measurement.latency = Latency{.median_ms = median_ms};
  measurement.latency->session_ci95_ms = {median_ms / 1.01, median_ms * 1.01};
  measurement.latency->ci95_ms = measurement.latency->session_ci95_ms;
  return measurement;
}

TEST(SessionSpread, IsTheDefaultWithoutRepeatedMeasurements) {
  EXPECT_EQ(session_spread({}), SessionSpread{});
  const std::vector once = {earlier("a", 5), earlier("b", 9)};
  EXPECT_EQ(session_spread(once), SessionSpread{});
}

TEST(SessionSpread, PoolsTheDifferencesOfAllModelsWithTheDefault) {
  // Logarithms of a: 0 and ln 1.1, variance (ln 1.1)^2 / 2 with one degree of freedom; b adds two
  // degrees without any difference.
  const std::vector known = {earlier("a", 1), earlier("b", 7), earlier("a", 1.1), earlier("b", 7),
                             earlier("b", 7)};
  const auto spread = session_spread(known);
  EXPECT_DOUBLE_EQ(spread.freedom, 8 + 1 + 2);
  const double squares = 8 * 0.025 * 0.025 + std::log(1.1) * std::log(1.1) / 2;
  EXPECT_NEAR(spread.relative, std::sqrt(squares / 11), 1e-12);
}

TEST(History, WidensTheIntervalByTheSpreadBetweenSessions) {
  auto measurement = settled(10);
  compare_with_history(measurement, "a", {}, {.relative = 0.02, .freedom = 1e9});
  const double half = std::hypot(std::log(1.01), 1.959964 * 0.02);
  EXPECT_NEAR(measurement.latency->ci95_ms.low, 10 * std::exp(-half), 1e-6);
  EXPECT_NEAR(measurement.latency->ci95_ms.high, 10 * std::exp(half), 1e-6);
  EXPECT_DOUBLE_EQ(measurement.latency->session_ci95_ms.high, 10 * 1.01);
  EXPECT_EQ(measurement.status, MeasurementStatus::ok);
}

TEST(History, AgreesWithAnEarlierMeasurementWhoseIntervalItMeets) {
  auto measurement = settled(10);
  const std::vector known = {earlier("a", 10.4)};
  compare_with_history(measurement, "a", known, {.relative = 0.02, .freedom = 100});
  EXPECT_EQ(measurement.status, MeasurementStatus::ok) << measurement.reason;
  EXPECT_FALSE(circumstances_of(measurement).unlike_before);
}

TEST(History, IsUnstableIfItIsUnlikeAnEarlierMeasurementOfTheModel) {
  auto measurement = settled(10);
  const std::vector known = {earlier("b", 10), earlier("a", 10), earlier("a", 11.5)};
  compare_with_history(measurement, "a", known, {.relative = 0.02, .freedom = 100});
  EXPECT_EQ(measurement.status, MeasurementStatus::unstable);
  EXPECT_TRUE(circumstances_of(measurement).unlike_before);
  EXPECT_THAT(measurement.reason,
              HasSubstr("took 11.5 ms (11.38 to 11.62) on 2023-11-14 at 22:13"));
}

TEST(History, OtherModelsDoNotMatter) {
  auto measurement = settled(10);
  const std::vector known = {earlier("b", 20)};
  compare_with_history(measurement, "a", known, {});
  EXPECT_EQ(measurement.status, MeasurementStatus::ok);
}

TEST(History, KeepsTheReasonOfAMeasurementThatDidNotSettle) {
  auto measurement = settled(10);
  measurement.status = MeasurementStatus::unstable;
  measurement.reason = "too wide";
  const std::vector known = {earlier("a", 20)};
  compare_with_history(measurement, "a", known, {});
  EXPECT_EQ(measurement.reason, "too wide");
  EXPECT_FALSE(circumstances_of(measurement).unlike_before);
}

TEST(History, LeavesAFailureAlone) {
  Measurement failed{.status = MeasurementStatus::failed, .reason = "died"};
  compare_with_history(failed, "a", {}, {});
  EXPECT_FALSE(failed.latency.has_value());
  EXPECT_EQ(failed.reason, "died");
}

// A device that has become slower for good is unstable at first, and then known to vary.
TEST(History, AChangeForGoodIsAcceptedAfterAWhile) {
  std::vector known = {earlier("a", 10), earlier("a", 10.1), earlier("a", 9.9)};
  int unstable = 0;
  auto last = MeasurementStatus::failed;
  for (int i = 0; i < 10; ++i) {
    auto measurement = settled(12);
    compare_with_history(measurement, "a", known, session_spread(known));
    last = measurement.status;
    unstable += last == MeasurementStatus::unstable ? 1 : 0;
    known.insert(known.begin(),
                 {.model = "a", .median_ms = 12, .ci95_ms = measurement.latency->ci95_ms});
  }
  EXPECT_GE(unstable, 1);
  EXPECT_LE(unstable, 3);
  EXPECT_EQ(last, MeasurementStatus::ok);
}

}  // namespace
}  // namespace fleetfit::measure
