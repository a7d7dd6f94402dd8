#include "fleetfit/transfer/one_proxy.h"

#include <gmock/gmock.h>

#include <cmath>

#include "made_devices.h"

namespace fleetfit::transfer {
namespace {

using testing::HasSubstr;

/// Accuracy that grows with the number of convolutions.
class ConvolutionCount final : public space::Source {
 public:
  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto design = designs[i];
      out[i] =
          static_cast<double>(std::ranges::count(design, 2) + 2 * std::ranges::count(design, 3));
    }
    return {};
  }
};

/// A target with these prices that counts how often it was asked.
class Target {
 public:
  explicit Target(std::vector<double> prices) : prices_(std::move(prices)) {}

  OneProxyActions actions() {
    OneProxyActions actions;
    actions.measure = [this](space::DesignBatch designs) -> Result<std::vector<double>> {
      space::Population asked(designs.genes());
      for (std::size_t i = 0; i < designs.size(); ++i) asked.add(designs[i]);
      measured_ += designs.size();
      return add_up(asked, "one-hot", prices_, 1.0);
    };
    actions.search = [this](const space::Source& latency) -> Result<space::Population> {
      ++searches_;
      std::vector<double> said(4);
      const auto found = some_cells(4, 31);
      EXPECT_TRUE(latency.evaluate(found, said));
      said_ = said;
      return found;
    };
    return actions;
  }

  std::size_t measured() const { return measured_; }
  int searches() const { return searches_; }
  const std::vector<double>& said() const { return said_; }

 private:
  std::vector<double> prices_;
  std::size_t measured_ = 0;
  int searches_ = 0;
  std::vector<double> said_;
};

TEST(OneProxy, ReusesAProxyThatOrdersSamplesAsTheTargetDoes) {
  const auto prices = random_prices(1);
  const auto proxy = proxy_with(prices);
  Target target(prices);
  const auto samples = some_cells(60, 5);
  const auto result =
      fit_one_proxy(proxy, ConvolutionCount(), samples, target.actions(), {.samples = 30}).value();
  EXPECT_FALSE(result.adapted);
  EXPECT_TRUE(result.reaches_threshold);
  ASSERT_EQ(result.steps.size(), 1u);
  EXPECT_EQ(result.steps[0].samples, 30u);
  EXPECT_FALSE(result.steps[0].adapted);
  EXPECT_EQ(result.measurements, 34u);  // and the four that the search found
  EXPECT_EQ(target.measured(), 34u);
  std::vector<double> expected(4);
  proxy.price(some_cells(4, 31), expected);
  EXPECT_EQ(target.said(), expected);
}

TEST(OneProxy, AdaptsOneThatDoesNotAndAddsSamplesUntilTheThresholdHolds) {
  const auto prices = random_prices(1);
  auto changed = random_prices(2);
  for (std::size_t i = 4; i < changed.size(); i += 5) changed[i] += 15;
  Target target(changed);
  const auto samples = some_cells(120, 5);
  const auto result = fit_one_proxy(proxy_with(prices), ConvolutionCount(), samples,
                                    target.actions(), {.samples = 8, .step = 8, .threshold = 0.985})
                          .value();
  EXPECT_TRUE(result.adapted);
  EXPECT_TRUE(result.reaches_threshold);
  EXPECT_GT(result.steps.size(), 1u);
  for (std::size_t i = 0; i < result.steps.size(); ++i) {
    EXPECT_EQ(result.steps[i].samples, 8 * (i + 1));
    ASSERT_TRUE(result.steps[i].adapted);
    EXPECT_EQ(result.steps[i].adapted->srcc >= 0.985, i + 1 == result.steps.size());
  }
  EXPECT_EQ(target.searches(), 1);
}

TEST(OneProxy, SaysWhenAllSamplesDoNotReachTheThreshold) {
  const auto prices = random_prices(1);
  core::Random random(8);
  OneProxyActions actions = Target(prices).actions();
  actions.measure = [&](space::DesignBatch designs) -> Result<std::vector<double>> {
    std::vector<double> noise(designs.size());
    for (auto& ms : noise) ms = random.uniform(1, 2);
    return noise;
  };
  actions.search = [](const space::Source&) -> Result<space::Population> {
    return some_cells(2, 1);
  };
  const auto samples = some_cells(30, 5);
  const auto result = fit_one_proxy(proxy_with(prices), ConvolutionCount(), samples, actions,
                                    {.samples = 20, .step = 7})
                          .value();
  EXPECT_FALSE(result.reaches_threshold);
  ASSERT_EQ(result.steps.size(), 3u);
  EXPECT_EQ(result.steps.back().samples, 30u);
}

TEST(OneProxy, LeavesDesignsOutThatCannotBeMeasured) {
  const auto prices = random_prices(1);
  Target target(prices);
  auto actions = target.actions();
  actions.measure = [measure = actions.measure](space::DesignBatch designs) {
    auto latency_ms = measure(designs);
    if (latency_ms) latency_ms->front() = std::nan("");
    return latency_ms;
  };
  const auto samples = some_cells(60, 5);
  const auto result =
      fit_one_proxy(proxy_with(prices), ConvolutionCount(), samples, actions, {.samples = 30})
          .value();
  EXPECT_EQ(result.steps[0].samples, 29u);
  EXPECT_EQ(result.measurements, 34u);
}

TEST(OneProxy, RefusesFewerSamplesThanAskedForAndPassesFailuresOn) {
  const auto proxy = proxy_with(random_prices(1));
  Target target(random_prices(1));
  const auto samples = some_cells(10, 5);
  const auto few =
      fit_one_proxy(proxy, ConvolutionCount(), samples, target.actions(), {.samples = 30});
  ASSERT_FALSE(few);
  EXPECT_THAT(few.error().message, HasSubstr("30 samples were asked for, expected 4 to 10"));
  auto actions = target.actions();
  actions.measure = [](space::DesignBatch) -> Result<std::vector<double>> {
    return fail(ErrorCode::device_failed, "the board is gone");
  };
  const auto gone = fit_one_proxy(proxy, ConvolutionCount(), samples, actions, {.samples = 10});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().message, "the board is gone");
}

TEST(DropDominated, KeepsWhatNoOtherBeatsInBoth) {
  const auto left =
      drop_dominated({{{}, 3, 70}, {{}, 1, 50}, {{}, 2, 70}, {{}, 4, 60}, {{}, 1, 40}});
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].latency_ms, 1);
  EXPECT_EQ(left[0].accuracy, 50);
  EXPECT_EQ(left[1].latency_ms, 2);
}

}  // namespace
}  // namespace fleetfit::transfer
