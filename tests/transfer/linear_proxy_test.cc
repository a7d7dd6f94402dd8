#include "fleetfit/transfer/linear_proxy.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "made_devices.h"

namespace fleetfit::transfer {
namespace {

using testing::HasSubstr;

std::vector<double> prices_of(const LinearProxy& proxy, const space::Population& designs) {
  std::vector<double> out(designs.size());
  proxy.price(designs, out);
  return out;
}

TEST(OperatorPricer, AddsUpWhatTheEncodingsSay) {
  const auto placed = random_prices(1);
  const auto live = random_prices(2);
  const auto designs = some_cells(300, 3);
  const auto expected_placed = add_up(designs, "one-hot", placed, 0.5);
  const auto expected_live = add_up(designs, "live", live, 0);

  const OperatorPricer pricer(cells(), {.constant = 0.5, .placed = placed, .live = live});
  std::vector<double> out(designs.size());
  pricer.price(designs, out);

  for (std::size_t i = 0; i < out.size(); ++i)
    EXPECT_NEAR(out[i], expected_placed[i] + expected_live[i], 1e-12);
}

TEST(OperatorPricer, AddsUpWhereGenesMayBeInactive) {
  const auto& space = **space::find_space("ofa-mbv3");
  core::Random random(5);
  std::vector<double> prices(operator_columns(space));
  for (auto& price : prices) price = random.uniform();
  const auto designs = *space::sample_designs(space, {.count = 50});
  const std::size_t number = *space.find_encoding("one-hot");
  std::vector<double> rows(designs.size() * (prices.size() + 1));
  space.encode(designs, number, rows);

  std::vector<double> out(designs.size());
  OperatorPricer(space, {.constant = 2, .placed = prices}).price(designs, out);

  for (std::size_t i = 0; i < out.size(); ++i) {
    double sum = 2;
    for (std::size_t j = 0; j < prices.size(); ++j)
      sum += prices[j] * rows[i * (prices.size() + 1) + j];
    EXPECT_NEAR(out[i], sum, 1e-12);
  }
}

TEST(LinearProxy, TellsDesignsThatWereNotMeasured) {
  const auto prices = random_prices(1);
  const auto proxy = proxy_with(prices);
  const auto others = some_cells(200, 12345);
  const auto expected = add_up(others, "one-hot", prices, 1.0);
  const auto said = prices_of(proxy, others);
  for (std::size_t i = 0; i < said.size(); ++i)
    EXPECT_NEAR(said[i], expected[i], 0.02 * expected[i]);
  EXPECT_EQ(proxy.model().encoding, "one-hot");
  EXPECT_GT(proxy.model().held_out_srcc, 0.999);
}

TEST(LinearProxy, OfARuntimeThatRemovesDeadPathsCountsLiveOperatorsAlone) {
  const auto prices = random_prices(4);
  const auto designs = some_cells(1000, 8);
  const auto proxy =
      LinearProxy::fit(table_of(designs, {{"proxy", add_up(designs, "live", prices, 1.0)}}), 0);
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->model().encoding, "live");
}

TEST(LinearProxy, GivesTheMeasurementsThemselvesIfEveryDesignWasMeasured) {
  const auto designs = all_cells();
  core::Random random(2);
  std::vector<double> latency_ms(designs.size());
  for (auto& ms : latency_ms) ms = random.uniform(1, 2);
  const auto proxy = LinearProxy::fit(table_of(designs, {{"noise", latency_ms}}), 0);
  ASSERT_TRUE(proxy);
  EXPECT_EQ(prices_of(*proxy, designs), latency_ms);
}

TEST(LinearProxy, LeavesEmptyCellsOut) {
  const auto prices = random_prices(1);
  const auto designs = some_cells(600, 9);
  auto latency_ms = add_up(designs, "one-hot", prices, 1.0);
  for (std::size_t i = 0; i < latency_ms.size(); i += 3)
    latency_ms[i] = std::numeric_limits<double>::quiet_NaN();
  const auto proxy = LinearProxy::fit(table_of(designs, {{"proxy", latency_ms}}), 0);
  ASSERT_TRUE(proxy);
  EXPECT_GT(proxy->model().held_out_srcc, 0.999);
}

TEST(LinearProxy, NamesTheColumnThatCannotBeFitted) {
  const auto designs = some_cells(40, 9);
  const auto flat = LinearProxy::fit(table_of(designs, {{"flat", std::vector(40, 3.0)}}), 0);
  ASSERT_FALSE(flat);
  EXPECT_EQ(flat.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(flat.error().message,
              testing::AllOf(HasSubstr("made.csv"), HasSubstr("'flat'"), HasSubstr("equal")));
  const auto few = LinearProxy::fit(table_of(some_cells(3, 1), {{"few", {1, 2, 3}}}), 0);
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("3 measured designs are too few"));
}

TEST(LinearProxy, CountsWhatAnOperatorCostsAboveTheCheapestOfItsPlace) {
  const auto proxy = proxy_with(random_prices(1));
  const auto costs = proxy.operator_costs();
  ASSERT_EQ(costs.size(), 30u);
  for (std::size_t place = 0; place < 6; ++place)
    EXPECT_EQ(std::ranges::min(costs.subspan(5 * place, 5)), 0);
}

}  // namespace
}  // namespace fleetfit::transfer
