#include "fleetfit/search/bisection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/search/toy_space.h"

namespace fleetfit::search {
namespace {

/// Counts how often it is asked, and for what.
class Device final : public space::Source {
 public:
  explicit Device(FunctionSource::Function function) : function_(std::move(function)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      asked_.emplace_back(designs[i].begin(), designs[i].end());
      out[i] = function_(designs[i]);
    }
    return {};
  }

  std::size_t asked() const { return asked_.size(); }
  std::size_t different() const {
    return std::set<std::vector<space::Choice>>(asked_.begin(), asked_.end()).size();
  }

 private:
  FunctionSource::Function function_;
  mutable std::vector<std::vector<space::Choice>> asked_;
};

double proxy_ms(space::Design d) { return 2 + sum_of(d, {3, 2, 1, 4}); }

class Bisect : public testing::Test {
 protected:
  Problem proxy() const {
    return {.space = &space_,
            .accuracy = &accuracy_,
            .costs = {{.name = "latency_ms", .source = &latency_}}};
  }

  /// The most accurate design within the limit, by looking at all.
  double truth(const Device& device, double limit) const {
    double best = -1;
    std::vector<space::Choice> design(space_.genes().size());
    do {
      double ms = 0;
      double accuracy = 0;
      const space::DesignBatch one(design, design.size());
      EXPECT_TRUE(device.evaluate(one, std::span(&ms, 1)));
      EXPECT_TRUE(accuracy_.evaluate(one, std::span(&accuracy, 1)));
      if (ms <= limit) best = std::max(best, accuracy);
    } while (space_.next(design));
    return best;
  }

  Bisected run(const Device& device, double limit, const BisectOptions& options = {}) {
    auto solutions = ProxySolutions::prepare(proxy(), pool_).value();
    const std::vector<DeviceCost> costs = {{&device, limit}};
    return bisect(solutions, costs, options).value();
  }

  ToySpace space_{5, 4};
  // Concave, as accuracies are.
  FunctionSource accuracy_{[](space::Design d) { return 10 * std::sqrt(sum_of(d, {4, 1, 2, 3})); }};
  FunctionSource latency_{proxy_ms};
  core::ThreadPool pool_{1};
};

TEST_F(Bisect, FindsTheBestDesignOfADeviceThatIsMerelySlower) {
  for (const double limit : {20.0, 40.0, 60.0, 80.0, 100.0}) {
    const Device device([](space::Design d) { return 3 * proxy_ms(d); });
    const auto result = run(device, limit);
    const Device again([](space::Design d) { return 3 * proxy_ms(d); });
    ASSERT_TRUE(result.best) << limit;
    EXPECT_LE(result.best->costs[0], limit);
    EXPECT_NEAR(result.best->accuracy, truth(again, limit), 1.0) << limit;
  }
}

TEST_F(Bisect, LearnsAnOperatorThatIsDearerOnTheDevice) {
  const auto dearer = [](space::Design d) { return 2 * proxy_ms(d) + 12.0 * d[0]; };
  const Device device(dearer);
  const auto result = run(device, 40, {.max_measurements = 14});
  const Device again(dearer);
  ASSERT_TRUE(result.best);
  EXPECT_NEAR(result.best->accuracy, truth(again, 40), 2.0);
}

TEST_F(Bisect, MeasuresNoDesignTwiceAndNoMoreThanAllowed) {
  for (const std::size_t most : {1U, 2U, 5U, 10U}) {
    const Device device([](space::Design d) { return proxy_ms(d) + d[0] * d[1]; });
    const auto result = run(device, 17, {.max_measurements = most});
    EXPECT_LE(device.asked(), most);
    EXPECT_EQ(device.asked(), device.different());
    EXPECT_EQ(result.measurements, device.asked());
    EXPECT_EQ(result.steps.size(), device.asked());
  }
}

TEST_F(Bisect, GivesTheBestThatWasMeasuredWhereverItEnds) {
  const Device device([](space::Design d) { return proxy_ms(d) * (d[2] == 3 ? 5 : 1); });
  const auto result = run(device, 20);
  double best = -1;
  for (const auto& step : result.steps)
    if (step.measured.costs[0] <= 20) best = std::max(best, step.measured.accuracy);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.best->accuracy, best);
}

TEST_F(Bisect, GivesTheFastestDesignIfNoneIsFastEnough) {
  const Device device([](space::Design d) { return 100 * proxy_ms(d); });
  const auto result = run(device, 1);
  EXPECT_FALSE(result.best);
  ASSERT_TRUE(result.nearest);
  EXPECT_EQ(result.nearest->costs[0], 200);  // all genes 0
}

TEST_F(Bisect, TakesTheMostAccurateDesignIfTheLimitIsLoose) {
  const Device device([](space::Design d) { return proxy_ms(d); });
  const auto result = run(device, 1000);
  EXPECT_EQ(result.best->design, std::vector<space::Choice>(5, 3));
  EXPECT_LE(result.measurements, 6U);  // nothing is left to be gained
}

TEST_F(Bisect, BearsDesignsThatCannotBeMeasured) {
  const Device device([](space::Design d) { return d[1] == 3 ? std::nan("") : proxy_ms(d); });
  const auto result = run(device, 20);
  ASSERT_TRUE(result.best);
  EXPECT_NE(result.best->design[1], 3);
}

TEST_F(Bisect, SolvesAWeightOnceForAllDevices) {
  auto solutions = ProxySolutions::prepare(proxy(), pool_).value();
  const Device one([](space::Design d) { return 2 * proxy_ms(d); });
  const Device other([](space::Design d) { return 20 * proxy_ms(d); });
  const std::vector<DeviceCost> first = {{&one, 30}};
  const std::vector<DeviceCost> second = {{&other, 300}};
  const auto a = bisect(solutions, first).value();
  const std::size_t solved = solutions.solved();
  const auto b = bisect(solutions, second).value();
  EXPECT_EQ(solutions.solved(), solved);
  EXPECT_EQ(a.best->design, b.best->design);
}

TEST_F(Bisect, KeepsLimitsOfLatencyAndEnergyAtOnce) {
  const FunctionSource energy([](space::Design d) { return 1 + sum_of(d, {1, 5, 2, 1}); });
  auto problem = proxy();
  problem.costs.push_back({.name = "energy_mj", .source = &energy});
  auto solutions = ProxySolutions::prepare(problem, pool_).value();
  const Device ms([](space::Design d) { return 2 * proxy_ms(d); });
  const Device mj([](space::Design d) { return 10 * (1 + sum_of(d, {1, 5, 2, 1})); });
  const std::vector<DeviceCost> device = {{&ms, 50}, {&mj, 120}};

  const auto result = bisect(solutions, device, {.max_measurements = 15}).value();

  double truth = -1;
  std::vector<space::Choice> design(5);
  do {
    const bool fits = 2 * proxy_ms(design) <= 50 && 10 * (1 + sum_of(design, {1, 5, 2, 1})) <= 120;
    if (fits) truth = std::max(truth, 10 * std::sqrt(sum_of(design, {4, 1, 2, 3})));
  } while (space_.next(design));
  ASSERT_TRUE(result.best);
  EXPECT_LE(result.best->costs[0], 50);
  EXPECT_LE(result.best->costs[1], 120);
  EXPECT_NEAR(result.best->accuracy, truth, 2.0);
  EXPECT_EQ(ms.asked(), mj.asked());
  for (const auto& step : result.steps) EXPECT_LE(step.weights[0] + step.weights[1], 1 + 1e-12);
}

TEST_F(Bisect, WorksInASpaceThatIsTooLargeToBeListed) {
  const ToySpace space(25, 4);  // 10^15 designs
  const FunctionSource accuracy([](space::Design d) { return sum_of(d, {4, 1, 2, 3}); });
  const Problem problem{.space = &space,
                        .accuracy = &accuracy,
                        .costs = {{.name = "latency_ms", .source = &latency_}}};
  auto solutions =
      ProxySolutions::prepare(problem, pool_, {.evolution = {.population = 100, .generations = 20}})
          .value();
  const Device device([](space::Design d) { return 3 * proxy_ms(d); });
  const std::vector<DeviceCost> cost = {{&device, 300}};
  const auto result = bisect(solutions, cost).value();
  ASSERT_TRUE(result.best);
  EXPECT_GT(result.best->costs[0], 270);  // makes use of what is allowed
}

TEST_F(Bisect, GivesWhatItHasWhenStopped) {
  std::stop_source stop;
  std::size_t asked = 0;
  const Device device([&](space::Design d) {
    if (++asked < 3) return proxy_ms(d);
    stop.request_stop();
    return std::nan("");
  });
  const auto result = run(device, 20, {.stop = stop.get_token()});
  EXPECT_EQ(result.measurements, 2U);
  for (const auto& step : result.steps) EXPECT_FALSE(std::isnan(step.measured.costs[0]));
}

TEST_F(Bisect, ConsidersListedDesignsAlone) {
  space::Population listed(5, 3);
  listed[1][0] = 1;
  listed[2][0] = 2;
  auto solutions = ProxySolutions::prepare(proxy(), pool_, {}, listed).value();
  EXPECT_EQ(solutions.designs().size(), 3U);
  const Device device(proxy_ms);
  const std::vector<DeviceCost> cost = {{&device, 6}};
  EXPECT_EQ(bisect(solutions, cost)->best->design, (std::vector<space::Choice>{1, 0, 0, 0, 0}));
}

TEST_F(Bisect, RefusesLimitsThatMakeNoSense) {
  auto solutions = ProxySolutions::prepare(proxy(), pool_).value();
  const Device device(proxy_ms);
  for (const double limit : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<DeviceCost> cost = {{&device, limit}};
    EXPECT_NE(bisect(solutions, cost).error().message.find("latency_ms"), std::string::npos);
  }
  EXPECT_FALSE(bisect(solutions, {}));
  const std::vector<DeviceCost> cost = {{&device, 5}};
  EXPECT_FALSE(bisect(solutions, cost, {.max_measurements = 0}));
  EXPECT_FALSE(solutions.solve({0.7, 0.7}));
  EXPECT_FALSE(solutions.solve({1.5}));
}

TEST_F(Bisect, SaysThatNothingIsKnownOfTheProxy) {
  const FunctionSource nothing([](space::Design) { return std::nan(""); });
  auto problem = proxy();
  problem.costs[0].source = &nothing;
  EXPECT_EQ(ProxySolutions::prepare(problem, pool_).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace fleetfit::search
