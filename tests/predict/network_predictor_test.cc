#include "fleetfit/predict/network_predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/predict/sets.h"

namespace fleetfit::predict {
namespace {

using ::testing::HasSubstr;

double falling_law(std::span<const double> x) { return 50 + 2 * x[0] - 0.3 * x[1]; }

TEST(Ridge, FindsALinearLawWithNegativeWeights) {
  const auto set = test::make_set(100, 3, 1, falling_law);
  const auto fitted = fit_ridge(set.view());
  ASSERT_TRUE(fitted) << fitted.error().message;
  const auto& model = dynamic_cast<const LinearModel&>(*fitted->model);
  EXPECT_NEAR(model.intercept(), 50, 1e-3);
  EXPECT_NEAR(model.weights()[0], 2, 1e-4);
  EXPECT_NEAR(model.weights()[1], -0.3, 1e-4);
  EXPECT_NEAR(model.weights()[2], 0, 1e-4);
}

NetworkPredictor train(const test::OwnedSet& set, DesignMethod method) {
  core::ThreadPool pool(2);
  auto predictor = train_network_predictor(
      set.rows(), set.y, {.method = method, .space = "icpe", .encoding = "genes"}, pool);
  EXPECT_TRUE(predictor) << predictor.error().message;
  return std::move(*predictor);
}

class EachNetworkMethod : public testing::TestWithParam<DesignMethod> {};

TEST_P(EachNetworkMethod, IsReadBackAsItWasWritten) {
  const auto set = test::make_set(40, 2, 2, falling_law);
  const auto predictor = train(set, GetParam());
  const auto json = core::parse_json(core::format_json(predictor.to_json()), "n.json").value();
  const auto copy = NetworkPredictor::from_json(core::JsonView(json, "n.json"));
  ASSERT_TRUE(copy) << copy.error().message;
  EXPECT_EQ(copy->space(), "icpe");
  EXPECT_EQ(copy->encoding(), "genes");
  std::vector<double> a(40);
  std::vector<double> b(40);
  predictor.price(set.rows(), a);
  copy->price(set.rows(), b);
  EXPECT_EQ(a, b);
  EXPECT_LT(mape_percent(a, set.y), 10);
  EXPECT_EQ(copy->interval90(3), predictor.interval90(3));
}

INSTANTIATE_TEST_SUITE_P(All, EachNetworkMethod,
                         testing::Values(DesignMethod::automatic, DesignMethod::linear,
                                         DesignMethod::trees, DesignMethod::table),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(NetworkPredictor, ChoosesTheLineForALine) {
  EXPECT_THAT(train(test::make_set(60, 2, 3, falling_law), DesignMethod::automatic).settings(),
              HasSubstr("penalty"));
}

TEST(NetworkPredictor, HoldsNineOfTenInItsIntervals) {
  core::Random random(5);
  const auto noisy = [&](std::span<const double> x) {
    return falling_law(x) * std::exp(0.1 * random.normal());
  };
  const auto predictor = train(test::make_set(300, 2, 4, noisy), DesignMethod::linear);
  const auto fresh = test::make_set(1000, 2, 5, noisy);
  std::vector<double> prices(1000);
  predictor.price(fresh.rows(), prices);
  int inside = 0;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const auto interval = predictor.interval90(prices[i]);
    if (interval.low <= fresh.y[i] && fresh.y[i] <= interval.high) ++inside;
  }
  EXPECT_NEAR(inside / 1000.0, 0.9, 0.04);
}

TEST(NetworkPredictor, NamesTheRowOfABadLatency) {
  core::ThreadPool pool(1);
  auto set = test::make_set(20, 2, 6, falling_law);
  for (const double bad : {0.0, -3.0, std::numeric_limits<double>::quiet_NaN()}) {
    set.y[11] = bad;
    const auto trained = train_network_predictor(set.rows(), set.y, {}, pool);
    ASSERT_FALSE(trained);
    EXPECT_THAT(trained.error().message, HasSubstr("row 11"));
  }
}

TEST(NetworkPredictor, RefusesAnotherTypeOfPredictor) {
  auto json = train(test::make_set(20, 2, 7, falling_law), DesignMethod::linear).to_json();
  json["type"] = "operators";
  const auto read = NetworkPredictor::from_json(core::JsonView(json, "n.json"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "n.json: type: 'operators' is no predictor of whole networks");
}

TEST(AdditiveTable, AddsUpTheCostsOfTheChoices) {
  const auto table = AdditiveTable::build(1, {{10, 20}, {100, 200, 300}}).value();
  const std::vector<std::uint16_t> designs = {0, 0, 1, 0, 0, 2, 1, 1, 1, 2};
  std::vector<double> out(5);
  table.price(designs, out);
  EXPECT_EQ(out, (std::vector<double>{111, 121, 311, 221, 321}));
  const std::vector<std::uint8_t> small(designs.begin(), designs.end());
  std::vector<double> again(5);
  table.price(small, again);
  EXPECT_EQ(again, out);
}

TEST(AdditiveTable, TakesAChoiceThatDoesNotExistAsTheLast) {
  const auto table = AdditiveTable::build(0, {{1, 2}}).value();
  std::vector<double> out(1);
  table.price(std::vector<std::uint16_t>{65535}, out);
  EXPECT_EQ(out[0], 2);
}

TEST(AdditiveTable, RefusesGenesWithoutChoicesAndCostsThatAreNone) {
  EXPECT_THAT(AdditiveTable::build(0, {{1}, {}}).error().message, HasSubstr("gene 1"));
  EXPECT_THAT(AdditiveTable::build(0, {{std::numeric_limits<double>::infinity()}}).error().message,
              HasSubstr("gene 0"));
}

}  // namespace
}  // namespace fleetfit::predict
