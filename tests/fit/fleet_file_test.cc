#include "fleetfit/fit/fleet_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fleetfit/fit/source.h"

namespace fleetfit::fit {
namespace {

constexpr std::string_view kFleet = R"(space: nasbench201
accuracy: table:accuracy.csv#top1
latency: latency.csv
original: '333330'
devices:
  - {name: phone, budget: {latency: 50%}}
  - {name: board, measure: "device:board", budget: {latency: 9 ms, of: p90}}
)";

TEST(FleetFile, IsReadWithTheLinesOfItsDevices) {
  const auto fleet = parse_fleet(kFleet, "there/fleet.yaml").value();
  ASSERT_EQ(fleet.devices.size(), 2U);
  EXPECT_TRUE(fleet.is_of_space());
  EXPECT_EQ(fleet.place(fleet.devices[1]), "there/fleet.yaml:7: device board");
  EXPECT_EQ(fleet.located("latency.csv"), "there/latency.csv");
  EXPECT_EQ(fleet.located_source("table:accuracy.csv#top1"), "table:there/accuracy.csv#top1");
}

TEST(FleetFile, BudgetsThatAreSharesHaveNoLimitYet) {
  const auto fleet = parse_fleet(kFleet, "fleet.yaml").value();
  const auto phone = budgets_of(fleet.devices[0]);
  ASSERT_EQ(phone.size(), 1U);
  EXPECT_TRUE(std::isnan(phone[0].limit));
  EXPECT_EQ(phone[0].share, 0.5);
  const auto board = budgets_of(fleet.devices[1]);
  EXPECT_EQ(board[0].limit, 9);
  EXPECT_EQ(board[0].statistic, "p90");
}

TEST(FleetFile, MistakesNameLineAndKey) {
  std::string text(kFleet);
  text.replace(text.find("50%"), 3, "50%, watt: 3");
  const auto fleet = parse_fleet(text, "fleet.yaml");
  ASSERT_FALSE(fleet);
  EXPECT_THAT(fleet.error().message,
              testing::HasSubstr("fleet.yaml:6: devices[0].budget.watt: there is no such key"));
}

}  // namespace
}  // namespace fleetfit::fit
