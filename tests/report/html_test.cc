#include "fleetfit/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "fleetfit/report/heat_map.h"
#include "fleetfit/report/parallel_coordinates.h"
#include "fleetfit/report/timeline.h"
#include "fleetfit/report/words.h"

namespace fleetfit::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(EscapeHtml, LeavesNothingThatHtmlWouldRead) {
  EXPECT_EQ(escape_html("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
}

TEST(HtmlPage, HasItsTitleAsTheHeading) {
  const auto page = html_page("a & b", "<p>x</p>\n");
  EXPECT_THAT(page, HasSubstr("<title>a &amp; b</title>"));
  EXPECT_THAT(page, HasSubstr("<body>\n<h1>a &amp; b</h1>\n<p>x</p>\n</body>"));
}

TEST(Section, IsNotThereWithoutContent) {
  EXPECT_EQ(section("title", "words", ""), "");
  EXPECT_EQ(folded("summary", ""), "");
  EXPECT_EQ(list({}), "");
}

TEST(Table, MarksColumnsOfWords) {
  Table table({"name", words("why")});
  table.add({"a", "b"});
  EXPECT_EQ(table.html(),
            "<figure><table>\n<tr><th>name</th><th class=\"words\">why</th></tr>\n"
            "<tr><td>a</td><td class=\"words\">b</td></tr>\n</table></figure>\n");
}

TEST(Table, StretchesTheLastCellOverColumnsThatAreLeft) {
  Table table({"name", "x", "y"});
  table.add({"a", "nothing known"});
  EXPECT_THAT(table.html(), HasSubstr("<td>a</td><td colspan=\"2\">nothing known</td>"));
}

TEST(Table, IsNotThereWithoutRows) { EXPECT_EQ(Table({"name", "x"}).html(), ""); }

TEST(Gauge, ShowsWhatIsOverTheLimit) {
  EXPECT_THAT(gauge(0.5), HasSubstr("class=\"fill\" style=\"width:40.0%\""));
  EXPECT_THAT(gauge(3), HasSubstr("class=\"fill over\" style=\"width:100.0%\""));
  EXPECT_EQ(gauge(std::numeric_limits<double>::quiet_NaN()), "");
}

TEST(HeatMap, HasACellForEachPairOfNames) {
  const std::vector<std::string> names = {"<one>", "two"};
  const auto map = heat_map(names, [](std::size_t row, std::size_t column) {
    return HeatCell{.strength = 1, .words = std::to_string(10 * row + column)};
  });
  for (const auto* words : {">0<", ">1<", ">10<", ">11<"}) EXPECT_THAT(map, HasSubstr(words));
  EXPECT_THAT(map, Not(HasSubstr("<one>")));
}

TEST(ParallelCoordinates, PutsAxesAtEqualDistances) {
  const std::vector<VerticalAxis> axes = {{.title = "a"}, {.title = "b"}, {.title = "c"}};
  const std::vector<AcrossLine> lines = {{.places = {0, 1, 0.5}, .style = "trial"}};
  // From 60 to 900, and from 340 at the bottom to 44 at the top.
  EXPECT_THAT(parallel_coordinates(axes, lines),
              HasSubstr("points=\"60,340.0 480,44.0 900,192.0\""));
}

TEST(Timeline, PutsBarsWhereTheyBeginAndEnd) {
  const std::vector<std::string> names = {"worker"};
  const std::vector<TimelineBar> bars = {{.start_s = 5, .length_s = 2.5, .style = "bar"}};
  // Bars have 790 from 150 on; between two there is a gap of 0.6.
  EXPECT_THAT(timeline(names, bars, 10), HasSubstr("x=\"545.0\" y=\"3.0\" width=\"196.9\""));
}

TEST(DurationText, IsAsPeopleSayIt) {
  EXPECT_EQ(duration_text(0.85), "850 ms");
  EXPECT_EQ(duration_text(12.34), "12.3 s");
  EXPECT_EQ(duration_text(250), "4 min 10 s");
  EXPECT_EQ(duration_text(12000), "3 h 20 min");
}

TEST(Counted, HasASingular) {
  EXPECT_EQ(counted(1, "thread"), "1 thread");
  EXPECT_EQ(counted(4, "thread"), "4 threads");
}

}  // namespace
}  // namespace fleetfit::report
