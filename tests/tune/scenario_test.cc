#include "fleetfit/tune/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "fleetfit/core/fields.h"

namespace fleetfit::tune {
namespace {

using std::chrono::nanoseconds;

constexpr Scenario kSingle{.kind = ScenarioKind::single};
constexpr Scenario kOffline{.kind = ScenarioKind::offline};

Scenario server(std::int64_t samples, double period_ms) {
  return {.kind = ScenarioKind::server, .samples = samples, .period_ms = period_ms};
}

Scenario multistream(double rate_hz) {
  return {.kind = ScenarioKind::multistream, .rate_hz = rate_hz};
}

/// A start-up time and a time for each sample.
std::function<BatchCost(std::int64_t)> affine(double base_ms, double each_ms) {
  return [=](std::int64_t n) {
    return BatchCost{.latency_ms = base_ms + each_ms * static_cast<double>(n),
                     .energy_mj = 10 + static_cast<double>(n)};
  };
}

TEST(Simulation, SingleStreamAnswersInTheTimeOfOneRun) {
  const auto response = simulate(kSingle, 16, affine(2, 3));
  EXPECT_DOUBLE_EQ(response.mean_ms, 5);
  EXPECT_DOUBLE_EQ(response.p99_ms, 5);
  EXPECT_NEAR(response.throughput, 200, 1e-9);
  EXPECT_NEAR(response.busy, 1, 1e-12);
  EXPECT_DOUBLE_EQ(*response.energy_mj, 11);
  EXPECT_DOUBLE_EQ(response.run_samples, 1);
  EXPECT_FALSE(response.saturated);
}

TEST(Simulation, OfflineRunsFullBatches) {
  const auto response = simulate(kOffline, 16, affine(2, 3));
  EXPECT_NEAR(response.throughput, 1000 * 16 / 50.0, 1e-9);
  EXPECT_NEAR(response.mean_ms, 50, 1e-9);
  EXPECT_NEAR(*response.energy_mj, 26 / 16.0, 1e-12);
}

TEST(Simulation, ServerSplitsEachQueryIntoBatches) {
  // 10 samples in batches of 4, 4 and 2 take 14, 14 and 8 ms: ends at 14, 28 and 36.
  const auto response = simulate(server(10, 100), 4, affine(2, 3));
  EXPECT_NEAR(response.mean_ms, (4 * 14 + 4 * 28 + 2 * 36) / 10.0, 1e-9);
  EXPECT_NEAR(response.p95_ms, 36, 1e-9);
  EXPECT_NEAR(response.busy, 0.36, 1e-9);
  EXPECT_NEAR(response.throughput, 100, 1e-9);
  EXPECT_NEAR(response.capacity(), 100 / 0.36, 1e-6);
  EXPECT_NEAR(*response.energy_mj, (14 + 14 + 12) / 10.0, 1e-12);
  EXPECT_NEAR(response.run_samples, 10 / 3.0, 1e-9);
}

TEST(Simulation, ServerThatJustKeepsUpIsNotSaturated) {
  const auto keeps_up = simulate(server(8, 26), 8, affine(2, 3));
  EXPECT_FALSE(keeps_up.saturated);
  EXPECT_NEAR(keeps_up.mean_ms, 26, 1e-9);
  EXPECT_NEAR(keeps_up.busy, 1, 1e-9);
  const auto too_slow = simulate(server(8, 25), 8, affine(2, 3));
  EXPECT_TRUE(too_slow.saturated);
  EXPECT_NEAR(too_slow.throughput, 1000 * 8 / 26.0, 1);
}

TEST(Simulation, PoissonArrivalsAndConstantServiceWaitAsMD1Does) {
  // Pollaczek and Khinchine: waiting = rho x service / (2 (1 - rho)).
  for (const double rho : {0.2, 0.5, 0.8}) {
    const double service_ms = 4;
    const auto response = simulate(multistream(1000 * rho / service_ms), 1, affine(0, service_ms),
                                   {.samples = 400'000, .seed = 3});
    const double expected = service_ms + rho * service_ms / (2 * (1 - rho));
    EXPECT_NEAR(response.mean_ms, expected, 0.02 * expected) << rho;
    EXPECT_NEAR(response.busy, rho, 0.01);
    EXPECT_FALSE(response.saturated);
  }
}

TEST(Rhythm, TellsHowLongWorkAndRestLast) {
  const auto queries = rhythm_of(server(8, 50), simulate(server(8, 50), 8, affine(2, 1)));
  ASSERT_TRUE(queries);
  EXPECT_NEAR(queries->busy_ms, 10, 1e-9);
  EXPECT_NEAR(queries->pause_ms, 40, 1e-9);
  // The busy period of M/D/1 lasts service / (1 - rho).
  const auto random = rhythm_of(multistream(100),
                                simulate(multistream(100), 1, affine(0, 5), {.samples = 400'000}));
  ASSERT_TRUE(random);
  EXPECT_NEAR(random->busy_ms, 10, 0.2);
  EXPECT_NEAR(random->pause_ms, 10, 1e-9);
}

TEST(Rhythm, IsNothingWithoutPauses) {
  EXPECT_FALSE(rhythm_of({.kind = ScenarioKind::single}, {.busy = 0.9}));
  EXPECT_FALSE(rhythm_of({.kind = ScenarioKind::offline}, {.busy = 0.9}));
  EXPECT_FALSE(rhythm_of(server(8, 50), {.busy = 1}));
  EXPECT_FALSE(rhythm_of(server(8, 50), {.busy = 0.9, .saturated = true}));
}

TEST(Simulation, BatchingMakesARateBearableThatSinglesAreNot) {
  const auto one_by_one = simulate(multistream(250), 1, affine(4, 1));
  EXPECT_TRUE(one_by_one.saturated);
  EXPECT_NEAR(one_by_one.throughput, 200, 1);
  const auto batched = simulate(multistream(250), 8, affine(4, 1));
  EXPECT_FALSE(batched.saturated);
  EXPECT_NEAR(batched.throughput, 250, 5);
  EXPECT_GT(batched.run_samples, 1);
  EXPECT_LT(batched.mean_ms, 20);
}

TEST(Simulation, PercentilesAreThoseOfTheRuns) {
  // Runs of 10 ms, one in ten above 20, one in a hundred above 40: the 95th percentile lies at 5/9
  // of the way from the 90th to the 99th.
  const auto cost = [](std::int64_t) {
    return BatchCost{.latency_ms = 10,
                     .spread = RunSpread{.mean_ms = 14, .p90_ms = 20, .p99_ms = 40}};
  };
  const auto response = simulate(kSingle, 1, cost, {.samples = 200'000});
  EXPECT_NEAR(response.mean_ms, 14, 0.1);
  EXPECT_NEAR(response.p95_ms, 20 + 20 * 5 / 9.0, 0.5);
  EXPECT_NEAR(response.p99_ms, 40, 1);
}

TEST(Simulation, SaysNoEnergyWhereARunHasNone) {
  const auto cost = [](std::int64_t) { return BatchCost{.latency_ms = 1}; };
  EXPECT_FALSE(simulate(kSingle, 1, cost).energy_mj);
}

/// A clock that only runs and waiting move.
class SteppedClock final : public core::Clock {
 public:
  nanoseconds now() const override { return time_; }
  std::chrono::system_clock::time_point date() const override { return {}; }
  void move_to(nanoseconds time) { time_ = std::max(time_, time); }
  void advance_ms(double ms) { time_ += nanoseconds(static_cast<std::int64_t>(ms * 1e6)); }

 private:
  nanoseconds time_{5};
};

Result<Response> serve_with(SteppedClock& clock, const Scenario& scenario, std::int64_t batch,
                            double seconds) {
  const RealServer real{.clock = clock,
                        .execute = [&](std::int64_t n) -> Status {
                          clock.advance_ms(2 + 3 * static_cast<double>(n));
                          return {};
                        },
                        .wait_until = [&](nanoseconds time) { clock.move_to(time); }};
  return serve_for_real(scenario, batch, real, {.seconds = seconds, .seed = 1});
}

TEST(RealRun, SeesWhatTheSimulationSees) {
  for (const auto& scenario : {kSingle, kOffline, server(10, 100), multistream(60)}) {
    SteppedClock clock;
    const auto real = serve_with(clock, scenario, 4, 300).value();
    const auto simulated = simulate(scenario, 4, affine(2, 3), {.samples = 18'000, .seed = 1});
    EXPECT_NEAR(real.mean_ms, simulated.mean_ms, 0.01 * simulated.mean_ms) << describe(scenario);
    EXPECT_NEAR(real.p99_ms, simulated.p99_ms, 0.02 * simulated.p99_ms) << describe(scenario);
    EXPECT_NEAR(real.throughput, simulated.throughput, 0.01 * simulated.throughput);
    EXPECT_NEAR(real.busy, simulated.busy, 0.01);
    EXPECT_FALSE(real.saturated);
  }
}

TEST(RealRun, NoticesThatItFallsBehind) {
  SteppedClock clock;
  const auto behind = serve_with(clock, server(10, 20), 4, 10).value();
  EXPECT_TRUE(behind.saturated);
  EXPECT_GT(behind.mean_ms, 1000);
}

TEST(RealRun, EndsWithTheErrorOfARun) {
  SteppedClock clock;
  const RealServer broken{.clock = clock, .execute = [](std::int64_t) -> Status {
                            return fail(ErrorCode::device_failed, "it died");
                          }};
  const auto outcome = serve_for_real(kSingle, 1, broken);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "it died");
}

TEST(RealRun, StopsWhenAsked) {
  SteppedClock clock;
  int runs = 0;
  const RealServer server{.clock = clock,
                          .execute = [&](std::int64_t) -> Status {
                            clock.advance_ms(1);
                            ++runs;
                            return {};
                          },
                          .stop = [&] { return runs >= 7; }};
  EXPECT_NEAR(serve_for_real(kSingle, 1, server, {.seconds = 1e6}).value().throughput, 1000, 1e-6);
  EXPECT_EQ(runs, 7);
}

TEST(ScenarioText, IsReadAndWritten) {
  for (const auto* text : {"single", "offline", "server:32@100ms", "multistream:12.5hz"})
    EXPECT_EQ(describe(parse_scenario(text).value()), text);
  EXPECT_EQ(parse_scenario("server:4@2.5").value(), server(4, 2.5));
  EXPECT_EQ(parse_scenario("multistream:50").value(), multistream(50));
}

TEST(ScenarioText, SaysWhatThereIs) {
  for (const auto* text : {"", "singles", "server", "server:0@10ms", "server:4", "server:x@10",
                           "multistream:", "multistream:-1", "multistream:nan", "single:3"}) {
    const auto parsed = parse_scenario(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("multistream:RATEhz"), std::string::npos);
  }
}

TEST(ResponseJson, KeepsEverything) {
  const auto response = simulate(server(10, 100), 4, affine(2, 3));
  const auto json = nlohmann::json::parse(core::to_json(response).dump());
  EXPECT_EQ(core::read<Response>(core::JsonView(json, "r")).value(), response);
}

}  // namespace
}  // namespace fleetfit::tune
