#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fleetfit/app/probing.h"

namespace fleetfit::app {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Roofline two_networks() {
  Roofline roofline{.peak_gflop_per_s = 100, .peak_int8_gop_per_s = 400};
  roofline.slopes = {{"L1", 200}, {"memory", 10}};
  roofline.networks = {
      {.name = "small_net", .gflop = 0.5, .gbytes = 0.1, .bound_gflop_per_s = 50},
      {.name = "big_net",
       .gflop = 10,
       .gbytes = 0.2,
       .bound_gflop_per_s = 100,
       .reached =
           ReachedSpeed{.device = "board", .threads = 2, .latency_ms = 125, .gflop_per_s = 80}}};
  return roofline;
}

TEST(RooflinePage, DrawsEachNetworkOnce) {
  const auto page = roofline_page({}, two_networks());
  EXPECT_EQ(occurrences(page, "data-name=\"small_net\""), 1);
  EXPECT_EQ(occurrences(page, "data-name=\"big_net\""), 1);
}

TEST(RooflinePage, TellsWhatIsMeasuredFromWhatIsNot) {
  const auto page = roofline_page({}, two_networks());
  EXPECT_THAT(page, HasSubstr("class=\"hollow\" data-name=\"small_net\""));
  EXPECT_THAT(page, HasSubstr("not measured; at most 50.0 GFLOP/s"));
  EXPECT_THAT(page, HasSubstr("class=\"filled\" data-name=\"big_net\""));
  EXPECT_THAT(page, HasSubstr("80.0 GFLOP/s measured on board (2 threads, 125 ms)"));
}

TEST(RooflinePage, NeedsNothingFromElsewhere) {
  const auto page = roofline_page({}, two_networks());
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

TEST(RooflinePage, EscapesWhatTheKernelCallsTheProcessor) {
  measure::ProbeReport report;
  report.hardware.cpu_model = "<b>CPU";
  EXPECT_THAT(roofline_page(report, two_networks()), Not(HasSubstr("<b>CPU")));
}

}  // namespace
}  // namespace fleetfit::app
