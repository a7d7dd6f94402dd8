#include "fleetfit/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

const std::vector<double> kExtremes = {-std::numeric_limits<double>::max(),
                                       -1e308,
                                       -1,
                                       -std::numeric_limits<double>::min(),
                                       -std::numeric_limits<double>::denorm_min(),
                                       -0.0,
                                       0.0,
                                       std::numeric_limits<double>::denorm_min(),
                                       1e-320,
                                       std::numeric_limits<double>::min(),
                                       1e-300,
                                       1,
                                       1 + std::numeric_limits<double>::epsilon(),
                                       1e15,
                                       1e15 + 1,
                                       1e308,
                                       std::numeric_limits<double>::max()};

void expect_few_in_order(const std::vector<double>& ticks, double low, double high) {
  SCOPED_TRACE(testing::Message() << low << " to " << high);
  EXPECT_LE(ticks.size(), 24U);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    EXPECT_TRUE(ticks[i] >= low && ticks[i] <= high) << ticks[i];
    EXPECT_FALSE(ticks[i] == 0 && std::signbit(ticks[i]));
    if (i > 0) {
      EXPECT_GT(ticks[i], ticks[i - 1]);
    }
  }
}

TEST(Ticks, AreFewForAnyFiniteRange) {
  for (const double low : kExtremes)
    for (const double high : kExtremes) {
      expect_few_in_order(linear_ticks(low, high), low, high);
      expect_few_in_order(log_ticks(low, high), low, high);
      if (low <= high) {
        EXPECT_FALSE(linear_ticks(low, high).empty()) << low << " to " << high;
      }
    }
}

TEST(LinearTicks, AreThereIfTheRangeIsInfinite) {
  EXPECT_THAT(linear_ticks(-1e308, 1e308),
              ElementsAre(DoubleEq(-1e308), DoubleEq(-8e307), DoubleEq(-6e307), DoubleEq(-4e307),
                          DoubleEq(-2e307), 0, DoubleEq(2e307), DoubleEq(4e307), DoubleEq(6e307),
                          DoubleEq(8e307), DoubleEq(1e308)));
}

TEST(AxisFor, BearsAnyFiniteValues) {
  for (const double a : kExtremes)
    for (const double b : kExtremes) {
      const auto axis = axis_for("x", {a, b});
      SCOPED_TRACE(testing::Message() << a << " and " << b);
      EXPECT_TRUE(std::isfinite(axis.low) && std::isfinite(axis.high) && axis.low < axis.high);
      EXPECT_LE(axis.ticks().size(), 24U);
      for (const double value : {a, b}) {
        EXPECT_TRUE(axis.holds(value));
        EXPECT_GE(axis.share(value), 0);
        EXPECT_LE(axis.share(value), 1);
      }
    }
}

TEST(Chart, IsShortWhateverTheValues) {
  for (const double a : kExtremes)
    for (const double b : kExtremes)
      for (const auto scale : {AxisScale::linear, AxisScale::logarithmic}) {
        Chart chart({"x", a, b, scale}, axis_for("y", {a, b}));
        const std::vector<ChartPoint> points = {
            {a, b}, {b, a}, {1e308, -1e308}, {std::numeric_limits<double>::quiet_NaN(), 1}};
        chart.line(points, "line", "");
        for (const auto& point : points) {
          chart.point(point, "hollow", "", "");
          chart.text(point, "words");
        }
        const auto svg = chart.svg();
        EXPECT_LT(svg.size(), 16'000U);
        EXPECT_THAT(svg, testing::Not(testing::AnyOf(HasSubstr("nan"), HasSubstr("inf"))))
            << a << " to " << b;
      }
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
