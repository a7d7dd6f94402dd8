#include "fleetfit/tune/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "fleetfit/core/json.h"

namespace fleetfit::tune {
namespace {

Parameter batches(std::int64_t low, std::int64_t high) {
  return {.name = "batch_size",
          .group = Group::inference,
          .low = static_cast<double>(low),
          .high = static_cast<double>(high),
          .integer = true};
}

Parameter choice(std::string name, std::vector<Value> values) {
  return {.name = std::move(name), .group = Group::inference, .values = std::move(values)};
}

InferenceStudy study_of(std::vector<Parameter> parameters, const Scenario& scenario,
                        InferenceGoal goal = InferenceGoal::latency) {
  return {.devices = {"local"},
          .parameters = Parameters::create(std::move(parameters)).value(),
          .scenario = scenario,
          .goal = goal};
}

/// Counts what is asked, and prices by a formula.
struct Device {
  std::function<double(const InferenceSetting&)> latency_ms;
  double slower = 1;  // with pauses
  std::vector<InferenceSetting> asked = {};
  std::vector<Rhythm> rhythms = {};

  PriceInference price() {
    return [this](const InferenceSetting& setting,
                  const std::optional<Rhythm>& rhythm) -> Result<InferenceCost> {
      asked.push_back(setting);
      if (rhythm) rhythms.push_back(*rhythm);
      const double ms = (rhythm ? slower : 1) * latency_ms(setting);
      return InferenceCost{.cost = {.latency_ms = ms, .energy_mj = 2 * ms},
                           .spread_ms = 0.01 * ms,
                           .energy_source = "modelled"};
    };
  }
};

InferenceSetting best_of(const InferenceResult& result) {
  return result.trials.at(result.best.value()).setting;
}

double batch_of(const InferenceSetting& setting) { return static_cast<double>(setting.batch); }

InferenceResult tune(const InferenceStudy& study, Device& device,
                     SamplerKind algorithm = SamplerKind::grid) {
  return tune_inference({.study = study, .algorithm = algorithm}, device.price(), {}).value();
}

TEST(InferenceTuning, PricesOneSampleOnlyInASingleStream) {
  Device device{[](const auto& s) { return 3 + batch_of(s) - static_cast<double>(*s.cores); }};
  const auto study = study_of({batches(1, 64), choice("cores", {std::int64_t{1}, std::int64_t{2}})},
                              {.kind = ScenarioKind::single});
  const auto result = tune(study, device);
  EXPECT_EQ(best_of(result), (InferenceSetting{.batch = 1, .cores = 2}));
  EXPECT_EQ(device.asked.size(), 6U);  // the best one twice, and three times to tell of it
  EXPECT_DOUBLE_EQ(result.trials[*result.best].response.mean_ms, 2);
}

TEST(InferenceTuning, FindsTheBestBatchOfManyWithFewPrices) {
  // Per sample 0.5 + 8 / n + (n / 40)²: least at n³ = 6400, between 18 and 19.
  Device device{[](const auto& s) {
    const double n = batch_of(s);
    return 0.5 * n + 8 + n * std::pow(n / 40, 2);
  }};
  const auto study = study_of({batches(1, 100)}, {.kind = ScenarioKind::offline});
  const auto result = tune(study, device);
  const auto per_sample = [&](double n) {
    return device.latency_ms({.batch = std::llround(n)}) / n;
  };
  EXPECT_LE(per_sample(batch_of(best_of(result))), 1.01 * per_sample(19));
  EXPECT_EQ(result.settings, 100U);
  EXPECT_LE(device.asked.size(), 19U);
  EXPECT_EQ(result.trials.size() + 4, device.asked.size());
}

TEST(InferenceTuning, EveryBestSettingWasPriced) {
  // A step at multiples of eight, as kernels have them: lines between powers of two are wrong here.
  Device device{[](const auto& s) { return 20 + 8 * std::ceil(batch_of(s) / 8); }};
  const auto study =
      study_of({batches(1, 60)}, {.kind = ScenarioKind::server, .samples = 24, .period_ms = 200});
  const auto result = tune(study, device);
  // One run of 24 samples: 44 ms. Three of 8 end after 28, 56 and 84 ms, two of 12 after 36 and 72.
  EXPECT_EQ(best_of(result).batch, 24);
  EXPECT_DOUBLE_EQ(result.trials[*result.best].response.mean_ms, 44);
}

TEST(InferenceTuning, LeavesSaturatedSettingsBehind) {
  // One by one is quickest while nothing waits, but cannot bear 300 samples per second.
  Device device{[](const auto& s) { return 4 + batch_of(s); }};
  const auto study = study_of({batches(1, 4)}, {.kind = ScenarioKind::multistream, .rate_hz = 300});
  const auto result = tune(study, device);
  const auto& best = result.trials[*result.best];
  EXPECT_FALSE(best.response.saturated);
  EXPECT_GT(best.setting.batch, 1);
}

TEST(InferenceTuning, TakesFewerCoresOfEquals) {
  Device device{[](const auto&) { return 5.0; }};
  const auto study =
      study_of({choice("cores", {std::int64_t{4}, std::int64_t{1}, std::int64_t{2}})},
               {.kind = ScenarioKind::single});
  EXPECT_EQ(best_of(tune(study, device)).cores, 1);
}

TEST(InferenceTuning, ReachesItsGoal) {
  // Two cores are quicker and take more energy.
  const auto price = [](const InferenceSetting& s,
                        const auto& /*rhythm*/) -> Result<InferenceCost> {
    const bool two = *s.cores == 2;
    return InferenceCost{.cost = {.latency_ms = two ? 6.0 : 10.0, .energy_mj = two ? 12.0 : 10.0}};
  };
  const std::vector<Parameter> cores = {choice("cores", {std::int64_t{1}, std::int64_t{2}})};
  const auto best_for = [&](InferenceGoal goal) {
    const auto study = study_of(cores, {.kind = ScenarioKind::single}, goal);
    return *best_of(tune_inference({.study = study}, price, {}).value()).cores;
  };
  EXPECT_EQ(best_for(InferenceGoal::latency), 2);
  EXPECT_EQ(best_for(InferenceGoal::throughput), 2);
  EXPECT_EQ(best_for(InferenceGoal::energy), 1);
}

TEST(InferenceTuning, HasNoBestForAnEnergyThatNobodyKnows) {
  const auto price = [](const InferenceSetting&, const auto& /*rhythm*/) -> Result<InferenceCost> {
    return InferenceCost{.cost = {.latency_ms = 1}};
  };
  const auto study = study_of({}, {.kind = ScenarioKind::single}, InferenceGoal::energy);
  EXPECT_FALSE(tune_inference({.study = study}, price, {}).value().best);
}

TEST(InferenceTuning, KeepsTheReasonOfWhatCannotBePriced) {
  const auto price = [](const InferenceSetting& s,
                        const auto& /*rhythm*/) -> Result<InferenceCost> {
    if (s.precision == "int8") return fail(ErrorCode::unsupported, "no int8 here");
    return InferenceCost{.cost = {.latency_ms = 1}};
  };
  const auto study = study_of({choice("precision", {std::string("int8"), std::string("fp32")})},
                              {.kind = ScenarioKind::single});
  const auto result = tune_inference({.study = study}, price, {}).value();
  ASSERT_EQ(result.trials.size(), 2U);
  EXPECT_EQ(result.trials[0].reason, "no int8 here");
  EXPECT_EQ(best_of(result).precision, "fp32");
}

TEST(InferenceTuning, GoesOnWithoutBatchesThatDoNotFit) {
  const auto price = [](const InferenceSetting& s,
                        const auto& /*rhythm*/) -> Result<InferenceCost> {
    if (s.batch > 20) return fail(ErrorCode::device_failed, "out of memory");
    return InferenceCost{.cost = {.latency_ms = 10 + 0.1 * batch_of(s)}};
  };
  const auto study = study_of({batches(1, 64)}, {.kind = ScenarioKind::offline});
  const auto result = tune_inference({.study = study}, price, {}).value();
  EXPECT_EQ(best_of(result).batch, 16);
}

TEST(InferenceTuning, IsCancelled) {
  std::stop_source source;
  source.request_stop();
  Device device{[](const auto&) { return 1.0; }};
  const auto study = study_of({}, {.kind = ScenarioKind::single});
  const auto result = tune_inference({.study = study}, device.price(), source.get_token());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
}

TEST(InferenceTuning, JudgesTheBestByASecondMeasurement) {
  // Two cores were lucky at first: 2 ms instead of 6.
  Device device;
  device.latency_ms = [&](const InferenceSetting& s) {
    if (*s.cores == 1) return 4.0;
    return std::ranges::count(device.asked, s) == 1 ? 2.0 : 6.0;
  };
  const auto study = study_of({choice("cores", {std::int64_t{1}, std::int64_t{2}})},
                              {.kind = ScenarioKind::single});
  const auto result = tune(study, device);
  EXPECT_EQ(best_of(result).cores, 1);
  EXPECT_EQ(result.trials.size(), 2U);
  EXPECT_DOUBLE_EQ(result.trials[1].response.mean_ms, 6);
  // Both twice, and the best of them three times more.
  EXPECT_EQ(device.asked.size(), 7U);
}

TEST(InferenceTuning, TellsOfTheBestWhatChoseNothing) {
  // One core was lucky at first, two cores were until they were chosen.
  Device device;
  device.latency_ms = [&](const InferenceSetting& s) {
    const auto times = std::ranges::count(device.asked, s);
    if (*s.cores == 1) return times == 1 ? 4.0 : 6.0;
    return times < 3 ? 5.0 : 7.0;
  };
  const auto study = study_of({choice("cores", {std::int64_t{1}, std::int64_t{2}})},
                              {.kind = ScenarioKind::single});
  const auto result = tune(study, device);
  EXPECT_EQ(best_of(result).cores, 2);
  EXPECT_DOUBLE_EQ(result.trials[*result.best].response.mean_ms, 7);
}

TEST(InferenceTuning, TellsTheMiddleOfThreeMeasurementsOfTheBest) {
  for (const auto& [last, middle] :
       {std::pair{std::array{9.0, 30.0, 10.0}, 10.0}, std::pair{std::array{7.0, 10.0, 6.0}, 7.0}}) {
    Device device;
    device.latency_ms = [&](const InferenceSetting& s) {
      const auto times = static_cast<std::size_t>(std::ranges::count(device.asked, s));
      return times < 2 ? 8.0 : last.at(times - 2);
    };
    const auto result = tune(study_of({}, {.kind = ScenarioKind::single}), device);
    EXPECT_DOUBLE_EQ(result.trials[*result.best].response.mean_ms, middle);
    EXPECT_EQ(device.asked.size(), 4U);
  }
}

TEST(InferenceTuning, MeasuresTheBestWithThePausesOfItsScenario) {
  Device device{.latency_ms = [](const auto& s) { return 6 + batch_of(s); }, .slower = 1.5};
  const auto study = study_of({choice("batch_size", {std::int64_t{1}, std::int64_t{4}})},
                              {.kind = ScenarioKind::server, .samples = 4, .period_ms = 100});
  const auto result = tune(study, device);
  // 10 ms for a full batch, 15 with pauses. Single samples would end after 7, 14, 21 and 28 ms, and
  // are taken to be slower by as much.
  EXPECT_EQ(best_of(result).batch, 4);
  EXPECT_DOUBLE_EQ(result.trials[*result.best].response.mean_ms, 15);
  EXPECT_DOUBLE_EQ(result.trials[0].response.mean_ms, 1.5 * 17.5);
  ASSERT_EQ(device.rhythms.size(), 4U);
  EXPECT_NEAR(device.rhythms[0].busy_ms, 10, 1e-9);
  EXPECT_NEAR(device.rhythms[0].pause_ms, 90, 1e-9);
}

TEST(InferenceTuning, MeasuresSingleSamplesWithPausesWhereBatchesAreNotFull) {
  Device device{.latency_ms = [](const auto& s) { return 1 + 0.01 * batch_of(s); }, .slower = 2};
  const auto study = study_of({choice("batch_size", {std::int64_t{8}})},
                              {.kind = ScenarioKind::multistream, .rate_hz = 10});
  const auto result = tune(study, device);
  EXPECT_EQ(device.rhythms.size(), 6U);
  // Most samples come alone: 2.02 ms.
  EXPECT_NEAR(result.trials[*result.best].response.mean_ms, 2.02, 0.1);
}

TEST(InferenceTuning, RefusesWhatInferenceDoesNotHave) {
  const auto refused = [](Parameter parameter) {
    const auto name = parameter.name;
    const auto ok = check_inference_parameters(Parameters::create({std::move(parameter)}).value());
    return !ok && ok.error().message.starts_with(name + ": ");
  };
  EXPECT_TRUE(refused(choice("memory", {std::int64_t{1}})));
  EXPECT_TRUE(refused(choice("cores", {std::int64_t{0}})));
  EXPECT_TRUE(refused(choice("cores", {1.5})));
  EXPECT_TRUE(refused(choice("precision", {std::string("fp16")})));
  EXPECT_TRUE(refused({.name = "batch_size", .low = 1, .high = 2}));
  EXPECT_FALSE(refused(batches(1, 32)));
}

TEST(InferenceTuning, SamplersTryEachSettingOnceAndTheBestAgain) {
  for (const auto algorithm : {SamplerKind::random, SamplerKind::tpe}) {
    Device device{[](const auto& s) { return 10 + 0.5 * batch_of(s); }};
    const auto study = study_of({choice("batch_size", {std::int64_t{1}, std::int64_t{2},
                                                       std::int64_t{4}, std::int64_t{8}})},
                                {.kind = ScenarioKind::offline});
    const auto result = tune(study, device, algorithm);
    EXPECT_EQ(best_of(result).batch, 8);
    EXPECT_LE(device.asked.size(), 8U);
  }
}

TEST(InferenceTuning, ReadsWhatItWrote) {
  const auto price = [](const InferenceSetting& s,
                        const auto& /*rhythm*/) -> Result<InferenceCost> {
    if (s.batch == 2) return fail(ErrorCode::unsupported, "not two");
    return InferenceCost{.cost = {.latency_ms = 10 + batch_of(s),
                                  .energy_mj = 3.5,
                                  .spread = RunSpread{.mean_ms = 11, .p90_ms = 12, .p99_ms = 13}},
                         .spread_ms = 0.25,
                         .predicted = true,
                         .energy_source = "modelled",
                         .note = "unstable"};
  };
  const auto study = study_of({batches(1, 4), choice("cores", {std::int64_t{2}}),
                               choice("precision", {std::string("int8")})},
                              {.kind = ScenarioKind::multistream, .rate_hz = 20});
  const auto result = tune_inference({.study = study}, price, {}).value();
  const auto json = nlohmann::json::parse(to_json(result).dump());
  const auto read = inference_result_from_json(core::JsonView(json, "r"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, result);
}

TEST(InferenceTuning, RefusesDamagedResults) {
  for (const auto* text :
       {"{}", R"({"version":2,"best":null,"settings":0,"elapsed_s":0,"trials":[]})",
        R"({"version":1,"best":0,"settings":0,"elapsed_s":0,"trials":[]})"}) {
    const auto json = nlohmann::json::parse(text);
    EXPECT_FALSE(inference_result_from_json(core::JsonView(json, "r"))) << text;
  }
}

TEST(InferenceTuning, RecommendsForTheStudy) {
  Device device{[](const auto& s) { return 10 + 0.5 * batch_of(s); }};
  const auto study = study_of({choice("batch_size", {std::int64_t{1}, std::int64_t{8}})},
                              {.kind = ScenarioKind::offline});
  const auto known = recommendation(tune(study, device), "local");
  ASSERT_TRUE(known);
  EXPECT_EQ(known->device, "local");
  EXPECT_DOUBLE_EQ(known->latency_ms, 14);
  EXPECT_NEAR(known->throughput, 8000 / 14.0, 1e-6);
  EXPECT_NEAR(*known->energy_mj, 28 / 8.0, 1e-9);
  EXPECT_FALSE(recommendation({}, "local"));
}

TEST(InferenceTuning, AsksTheSameQuestionInTheSameWords) {
  const Scenario single{.kind = ScenarioKind::single};
  const auto key = [](const InferenceStudy& study) {
    return question_key(study, SamplerKind::grid);
  };
  const auto study = study_of({batches(1, 32)}, single);
  auto elsewhere = study;
  elsewhere.devices = {"phone"};
  EXPECT_EQ(key(study), key(elsewhere));
  EXPECT_NE(key(study), key(study_of({batches(1, 16)}, single)));
  EXPECT_NE(key(study), key(study_of({batches(1, 32)}, {.kind = ScenarioKind::offline})));
  EXPECT_NE(key(study), key(study_of({batches(1, 32)}, single, InferenceGoal::energy)));
  EXPECT_NE(key(study), question_key(study, SamplerKind::tpe));
}

}  // namespace
}  // namespace fleetfit::tune
