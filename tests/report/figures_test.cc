#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "fleetfit/report/heat_map.h"
#include "fleetfit/report/html.h"
#include "fleetfit/report/parallel_coordinates.h"
#include "fleetfit/report/timeline.h"

namespace fleetfit::report {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<double> kOddNumbers = {-std::numeric_limits<double>::max(),
                                         -1e308,
                                         -0.0,
                                         std::numeric_limits<double>::denorm_min(),
                                         1e308,
                                         std::numeric_limits<double>::max(),
                                         std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::quiet_NaN()};

void expect_numbers(const std::string& html) {
  EXPECT_LT(html.size(), 3000U);
  EXPECT_THAT(html, Not(AnyOf(HasSubstr("nan"), HasSubstr("inf"))));
}

TEST(Figures, HoldShortNumbersWhateverIsDrawn) {
  const std::vector<std::string> names = {"a"};
  for (const double odd : kOddNumbers) {
    SCOPED_TRACE(odd);
    expect_numbers(heat_map(names, [&](auto, auto) { return HeatCell{.strength = odd}; }));
    const std::vector<VerticalAxis> axes = {{.title = "x", .labels = {{odd, "l"}}}, {.title = "y"}};
    const std::vector<AcrossLine> lines = {{.places = {odd, 0.5}, .style = "trial"}};
    expect_numbers(parallel_coordinates(axes, lines));
    const std::vector<TimelineBar> bars = {{.start_s = odd, .length_s = odd, .style = "bar"}};
    expect_numbers(timeline(names, bars, 10));
    expect_numbers(meter(odd));
    expect_numbers(gauge(odd));
  }
}

TEST(Timeline, HasFewTicksHoweverLongItIs) {
  const std::vector<std::string> names = {"a"};
  EXPECT_LT(timeline(names, {}, 1e308).size(), 6000U);
  EXPECT_LT(timeline(names, {}, 1e-300).size(), 6000U);
}

TEST(EscapeHtml, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(escape_html("a\xff<\x1b\n"), "a\\xff&lt;\\x1b\n");
}

}  // namespace
}  // namespace fleetfit::report
