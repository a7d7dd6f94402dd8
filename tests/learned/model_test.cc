#include "fleetfit/learned/model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/learned/answer.h"
#include "fleetfit/learned/lessons.h"
#include "tests/core/temporary_folder.h"
#include "tests/learned/small_model.h"

namespace fleetfit::learned {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const space::Space& cells() { return **space::find_space("nasbench201"); }

DeviceVector device_of(const Model& model, double a, double b) {
  return model.parts().device.read(std::vector{a, b}).value();
}

Judged judge(const DeviceJudge& judge, std::string_view text) {
  space::Population one(6);
  one.add(*cells().parse(text));
  Judged judged;
  judge.judge(one, std::span(&judged, 1));
  return judged;
}

TEST(DeviceJudge, PricesDesignsByTheDevicesInputs) {
  const auto model = Model::make(small_parts()).value();
  const DeviceJudge on_device(model, device_of(model, 2, 8));

  const auto judged = judge(on_device, "332111");

  const double second = std::log(2.0);
  EXPECT_NEAR(judged.log_cost[0], std::log(4.0) + 2 * (0.3 + 0.1 * second) + 0.1, 1e-5);
  EXPECT_NEAR(judged.accuracy, std::sinh(2 * 0.25 + 0.1), 1e-5);
  EXPECT_NEAR(judged.spread[0], 0, 1e-4);
  EXPECT_NEAR(on_device.typical(0), std::log(4.0) + 0.4 + 0.1 * second, 1e-5);
}

TEST(DeviceJudge, SpreadIsTheDeviationOfTheMembers) {
  auto parts = small_parts();
  auto other = parts.costs[0].members[1].network.parts();
  other.skip.bias[0] = 0.2F;
  parts.costs[0].members[1].network = DesignNetwork::make(other, 62).value();
  const auto model = Model::make(std::move(parts)).value();
  const DeviceJudge on_device(model, device_of(model, 1, 1));
  EXPECT_NEAR(judge(on_device, "000000").spread[0], 0.2 / std::sqrt(2.0), 1e-5);
}

TEST(DeviceJudge, MarginGrowsWithTheSpread) {
  const auto model = Model::make(small_parts()).value();
  const DeviceJudge on_device(model, device_of(model, 1, 1));
  const auto margin = [&](double spread) { return on_device.safe({.spread = {spread}}, 0); };
  EXPECT_NEAR(margin(0), 2.5 * 0.02, 1e-9);
  EXPECT_NEAR(margin(0.04), 2.5 * std::sqrt(0.04 * 0.04 + 0.02 * 0.02), 1e-9);
  EXPECT_NEAR(margin(100), 1, 1e-9);
}

TEST(Risk, FollowsWhatWasExceededBefore) {
  const Risk risk{.excess = {-1, 0, 1, 3, 7}};
  EXPECT_EQ(risk.chance(-2), 1);
  EXPECT_NEAR(risk.chance(0), 0.75, 1e-12);
  EXPECT_NEAR(risk.chance(2), 0.375, 1e-12);
  EXPECT_EQ(risk.chance(7), 0);
  for (const double chance : {0.0, 0.1, 0.5, 0.9, 1.0})
    EXPECT_NEAR(risk.chance(risk.room(chance)), chance, 1e-12);
}

TEST(Risk, OfEqualExcessesIsAStep) {
  const Risk risk{.excess = {2, 2, 2}};
  EXPECT_EQ(risk.chance(1.99), 1);
  EXPECT_EQ(risk.chance(2), 0);
  EXPECT_EQ(risk.room(0.3), 2);
}

/// True costs exceed predicted ones by 0 to 5 times the spread, which is 0.02, all alike.
Model risky_model(double price) {
  auto parts = small_parts();
  parts.costs[0].risk = {.excess = {0, 5}, .price = price};
  return Model::make(std::move(parts)).value();
}

TEST(Answer, TakesARiskThatIsWorthIt) {
  core::ThreadPool pool(1);
  // Three narrow convolutions (0.3 in ln) leave room for half of what was exceeded, two for all.
  const Goal goal{.limits = {std::exp(0.351)}};
  const auto best = [&](double price) {
    const auto model = risky_model(price);
    return searched_answer(DeviceJudge(model, device_of(model, 1, 1)), goal, pool, 1).value();
  };
  const auto bold = best(0.01);
  EXPECT_NEAR(std::asinh(bold.accuracy), 0.3, 1e-5);
  EXPECT_NEAR(bold.costs[0].risk, 0.49, 1e-3);
  EXPECT_TRUE(bold.keeps_limits);
  const auto careful = best(10);
  EXPECT_NEAR(std::asinh(careful.accuracy), 0.2, 1e-5);
  EXPECT_EQ(careful.costs[0].risk, 0);
}

TEST(Answer, TakesNoMoreRiskThanIsAllowed) {
  const auto model = risky_model(0);
  const DeviceJudge on_device(model, device_of(model, 1, 1));
  core::ThreadPool pool(1);
  const auto sure =
      searched_answer(on_device, {.limits = {std::exp(0.351)}, .most_risk = 0.1}, pool, 1);
  EXPECT_NEAR(std::asinh(sure->accuracy), 0.2, 1e-5);
  EXPECT_LE(sure->costs[0].risk, 0.1);
}

TEST(Model, RememberedDesignsAreJudgedAlike) {
  auto model = Model::make(small_parts()).value();
  const auto device = device_of(model, 3, 5);
  const auto before = judge(DeviceJudge(model, device), "430213");
  core::ThreadPool pool(2);
  model.remember_designs(pool);
  const auto after = judge(DeviceJudge(model, device), "430213");
  EXPECT_EQ(before.log_cost, after.log_cost);
  EXPECT_EQ(before.accuracy, after.accuracy);
}

/// The best accuracy within a limit on a device where ln latency is 0.1 for each 1x1 and 0.3 for
/// each 3x3 convolution (and 0.05 of margin), by trying all numbers of them.
double best_number(double log_limit) {
  double best = 0;
  for (int narrow = 0; narrow <= 6; ++narrow)
    for (int wide = 0; narrow + wide <= 6; ++wide)
      if (0.1 * narrow + 0.3 * wide <= log_limit + 1e-9)
        best = std::max(best, 0.1 * narrow + 0.25 * wide);
  return best;
}

TEST(Answer, IsTheBestWithinTheLimit) {
  auto parts = small_parts();
  parts.optimizers.push_back(
      OptimizerNetwork::make(undecided_parts(cells(), Model::optimizer_inputs(parts)), cells(),
                             Model::optimizer_inputs(parts))
          .value());
  const auto model = Model::make(std::move(parts)).value();
  const DeviceJudge on_device(model, device_of(model, 1, 1));
  core::ThreadPool pool(1);
  for (const double limit : {0.3, 0.75, 1.0, 2.5}) {
    const double margin = on_device.safe({}, 0);
    const Goal goal{.limits = {std::exp(limit + margin + 1e-6)}};

    const auto searched = searched_answer(on_device, goal, pool, 1).value();
    EXPECT_NEAR(std::asinh(searched.accuracy), best_number(limit), 1e-5);
    EXPECT_TRUE(searched.by_search);

    const auto quick = answer(on_device, goal);
    EXPECT_TRUE(quick.keeps_limits);
    EXPECT_LE(std::log(quick.costs[0].safe), limit + margin + 1e-5);
    EXPECT_TRUE(cells().check(quick.design));
    // Neighbours cannot trade one gene for another, so it may miss a trade, but not a free gain.
    EXPECT_GT(std::asinh(quick.accuracy), best_number(limit) - 0.21);
  }
}

TEST(Answer, WeighsCostsAgainstAccuracy) {
  const auto model = Model::make(small_parts()).value();
  const DeviceJudge on_device(model, device_of(model, 1, 1));
  const auto cheap = answer(on_device, {.weights = {1000}});
  const auto rich = answer(on_device, {.weights = {0}});
  EXPECT_NEAR(std::log(cheap.costs[0].value), 0, 1e-5);
  EXPECT_EQ(cells().format(rich.design), "333333");
}

TEST(Answer, AsksASearchWhenTheDeviceIsUnlikeAllOthers) {
  const auto model = Model::make(small_parts()).value();
  core::ThreadPool pool(1);
  const DeviceJudge strange(model, device_of(model, 1, 1000));
  const auto unsure = sure_answer(strange, {.limits = {1e6}}, pool, 1).value();
  EXPECT_THAT(unsure.doubts, Contains(Doubt::far_device));
  EXPECT_TRUE(unsure.by_search);

  const DeviceJudge usual(model, device_of(model, 1, 1));
  const auto sure = sure_answer(usual, {.limits = {1e6}}, pool, 1).value();
  EXPECT_FALSE(sure.by_search);
  EXPECT_THAT(sure.doubts, testing::IsEmpty());
}

TEST(Answer, SaysThatNoDesignKeepsTheLimit) {
  const auto model = Model::make(small_parts()).value();
  const DeviceJudge on_device(model, device_of(model, 1, 1));
  const auto nearest = answer(on_device, {.limits = {0.5}});
  EXPECT_FALSE(nearest.keeps_limits);
  EXPECT_THAT(nearest.doubts, Contains(Doubt::over_limit));
  EXPECT_NEAR(nearest.costs[0].value, 1, 1e-5);
}

TEST(Goal, IsRefusedIfItCannotBe) {
  const auto model = Model::make(small_parts()).value();
  EXPECT_THAT(check({.limits = {-1}}, model).error().message, HasSubstr("latency_ms"));
  EXPECT_THAT(check({.limits = {1, 2}}, model).error().message, HasSubstr("1 costs"));
  EXPECT_THAT(check({.weights = {double{NAN}}}, model).error().message, HasSubstr("weight"));
  EXPECT_THAT(check({.limits = {1}, .most_risk = 1}, model).error().message, HasSubstr("risk"));
  EXPECT_TRUE(check({.limits = {INFINITY}}, model));
}

class ModelFile : public testing::Test {
 protected:
  static nlohmann::json document() {
    auto parts = small_parts();
    parts.costs[0].risk = {.excess = {-1, 0, 2}, .price = 0.5};
    parts.optimizers.push_back(
        OptimizerNetwork::make(undecided_parts(cells(), Model::optimizer_inputs(parts)), cells(),
                               Model::optimizer_inputs(parts))
            .value());
    return to_json(Model::make(std::move(parts)).value());
  }
  static std::string refusal(const nlohmann::json& document) {
    const auto model = model_from_json(core::JsonView(document, "m.json"));
    if (model) return "was read";
    EXPECT_EQ(model.error().code, ErrorCode::invalid_input);
    return model.error().message;
  }
};

TEST_F(ModelFile, GivesTheSameAnswersWhenReadAgain) {
  const core::TemporaryFolder folder;
  const auto json = document();
  const auto model = model_from_json(core::JsonView(json, "m.json")).value();
  ASSERT_TRUE(write_model(model, folder.path() / "m.json"));
  const auto again = read_model(folder.path() / "m.json").value();
  EXPECT_EQ(to_json(again), json);
  const auto device = device_of(model, 2, 3);
  const Goal goal{.limits = {9}};
  EXPECT_EQ(answer(DeviceJudge(model, device), goal).design,
            answer(DeviceJudge(again, device), goal).design);
}

TEST_F(ModelFile, OfVersion1HasAMarginAlone) {
  auto json = document();
  json["version"] = 1;
  json["costs"][0].erase("excess");
  json["costs"][0].erase("risk_price");
  const auto model = model_from_json(core::JsonView(json, "m.json")).value();
  EXPECT_FALSE(model.parts().costs[0].risk.is_known());
  const DeviceJudge on_device(model, device_of(model, 2, 3));
  const auto safe = answer(on_device, {.limits = {9}});
  EXPECT_LE(safe.costs[0].safe, 9);
  EXPECT_EQ(safe.costs[0].risk, 0);
}

TEST_F(ModelFile, NamesWhatIsWrong) {
  const auto with = [](const std::string& pointer, const nlohmann::json& value) {
    auto json = document();
    json[nlohmann::json::json_pointer(pointer)] = value;
    return refusal(json);
  };
  EXPECT_THAT(with("/format", "other"), HasSubstr("m.json: format is 'other'"));
  EXPECT_THAT(with("/version", 3), HasSubstr("version 3"));
  EXPECT_THAT(with("/space", "nowhere"), HasSubstr("nowhere"));
  EXPECT_THAT(with("/space_version", 99), HasSubstr("version 99 of the space"));
  EXPECT_THAT(with("/space", "fbnet"), HasSubstr("layer"));
  EXPECT_THAT(with("/features/columns/0/scale", 0), HasSubstr("feature ref:a: the scale"));
  EXPECT_THAT(with("/features/covariance", {1, 2}), HasSubstr("covariance"));
  EXPECT_THAT(with("/costs/0/members/0/typical", {1}), HasSubstr("typical"));
  EXPECT_THAT(with("/costs/0/margin", -1), HasSubstr("margin"));
  EXPECT_THAT(with("/costs/0/excess", {1}), HasSubstr("quantile"));
  EXPECT_THAT(with("/costs/0/excess", {2, 1}), HasSubstr("do not rise"));
  EXPECT_THAT(with("/costs/0/risk_price", -1), HasSubstr("price of risk"));
  EXPECT_THAT(with("/costs", nlohmann::json::array()), HasSubstr("optimizers[0]"));
  EXPECT_THAT(with("/optimizers/0/hidden", 7), HasSubstr("m.json: optimizers[0].hidden"));
  EXPECT_THAT(with("/extra", 1), HasSubstr("extra"));
}

}  // namespace
}  // namespace fleetfit::learned
