#include "fleetfit/core/plausible.h"

#include <gtest/gtest.h>

#include <limits>

namespace fleetfit::core {
namespace {

TEST(Absurdity, IsNothingForWhatDevicesDo) {
  for (const double value : {1e-6, 0.5, 12.0, 86'400'000.0})
    EXPECT_FALSE(absurdity(kPlausibleLatencyMs, value)) << value;
  for (const double value : {0.0, 0.93, 76.1, 100.0})
    EXPECT_FALSE(absurdity(kPlausibleAccuracy, value)) << value;
}

TEST(Absurdity, SaysWhatIsWrong) {
  EXPECT_EQ(absurdity(kPlausibleLatencyMs, 0), "is not positive");
  EXPECT_EQ(absurdity(kPlausibleLatencyMs, 1e-320), "is no latency: it is less than 1e-09");
  EXPECT_EQ(absurdity(kPlausibleLatencyMs, 1e20), "is no latency: it is longer than a day");
  EXPECT_EQ(absurdity(kPlausibleAccuracy, 1e20), "is no accuracy: it is larger than 1,000,000");
  EXPECT_EQ(absurdity(kPlausibleAccuracy, -1e20), "is no accuracy: it is less than -1e+06");
  EXPECT_EQ(absurdity(kPlausibleAmount, -1), "is no amount: it is negative");
}

TEST(Absurdity, RefusesWhatIsNoNumberForEachKind) {
  for (const auto& range : {kPlausibleLatencyMs, kPlausibleEnergyMj, kPlausibleMemoryMb,
                            kPlausiblePowerMw, kPlausibleAccuracy, kPlausibleAmount})
    for (const double value : {1e308, -1e308, std::numeric_limits<double>::quiet_NaN()})
      EXPECT_TRUE(absurdity(range, value)) << range.what << " " << value;
}

}  // namespace
}  // namespace fleetfit::core
