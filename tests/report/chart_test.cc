#include "fleetfit/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace fleetfit::report {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LogTicks, AreOneTwoAndFiveTimesPowersOfTen) {
  EXPECT_THAT(log_ticks(0.15, 6),
              ElementsAre(DoubleEq(0.2), DoubleEq(0.5), DoubleEq(1), DoubleEq(2), DoubleEq(5)));
}

TEST(LogTicks, HoldBothEnds) {
  EXPECT_THAT(log_ticks(10, 100),
              ElementsAre(DoubleEq(10), DoubleEq(20), DoubleEq(50), DoubleEq(100)));
}

TEST(Chart, PutsPowersAtEqualDistances) {
  Chart chart({"x", 1, 100}, {"y", 1, 100});
  // The frame is 864 wide from 72 on and 488 high from 504 upwards.
  chart.point({10, 10}, "hollow", "the middle", "m");
  EXPECT_THAT(chart.svg(), HasSubstr("cx=\"504.0\" cy=\"260.0\""));
}

TEST(Axis, SharesOfALogarithmicOneAreThoseOfPowers) {
  const Axis axis{"x", 1, 10000};
  EXPECT_DOUBLE_EQ(axis.share(10), 0.25);
  EXPECT_DOUBLE_EQ(axis.share(100), 0.5);
}

TEST(AxisFor, IsLogarithmicIfValuesDifferByMoreThanAHundred) {
  EXPECT_EQ(axis_for("x", {1, 200}).scale, AxisScale::logarithmic);
  EXPECT_EQ(axis_for("x", {1, 50}).scale, AxisScale::linear);
}

TEST(AxisFor, LeavesOutTheFewThatLieFarOff) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(100 + i);
  values.push_back(2000);
  const auto axis = axis_for("x", values);
  EXPECT_TRUE(axis.holds(139));
  EXPECT_FALSE(axis.holds(2000));
}

TEST(Extent, PassesOverWhatIsNotFinite) {
  Extent extent;
  for (const double value : {3.0, std::numeric_limits<double>::quiet_NaN(), -1.0,
                             std::numeric_limits<double>::infinity()})
    extent.hold(value);
  EXPECT_EQ(extent.low, -1);
  EXPECT_EQ(extent.high, 3);
}

}  // namespace
}  // namespace fleetfit::report
