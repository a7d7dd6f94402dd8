#include "fleetfit/transfer/adaproxy.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fleetfit/core/file.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/core/statistics.h"
#include "made_devices.h"

namespace fleetfit::transfer {
namespace {

using testing::HasSubstr;

struct Samples {
  space::Population designs;
  std::vector<double> latency_ms;

  Measured measured() const { return {.designs = designs, .latency_ms = latency_ms}; }
};

/// Exact latencies: twice the proxy's constant, and these prices.
Samples measure_exactly(std::span<const double> prices, std::size_t count, std::uint64_t seed = 5) {
  const auto designs = some_cells(count, seed);
  return {designs, add_up(designs, "one-hot", prices, 2.0)};
}

std::vector<double> scaled(std::vector<double> prices, double factor) {
  for (auto& price : prices) price *= factor;
  return prices;
}

double srcc_on_others(const AdaptedProxy& adapted, std::span<const double> prices) {
  const auto others = some_cells(1000, 777);
  std::vector<double> said(others.size());
  adapted.predict_ms(others, said);
  return *core::spearman(said, add_up(others, "one-hot", prices, 2.0));
}

TEST(AdaProxy, FindsTheOneOperatorThatIsSlowerOnTheTarget) {
  const auto prices = random_prices(1);
  constexpr std::size_t kChanged = 8;  // edge 0>2 conv3x3
  auto target = scaled(prices, 2);     // everything costs twice as much,
  target[kChanged] *= 5;               // this one ten times

  const auto adapted = adapt(proxy_with(prices), measure_exactly(target, 70).measured()).value();

  EXPECT_NEAR(adapted.scale(), 2.0, 0.1);
  ASSERT_FALSE(adapted.changed_operators().empty());
  const auto& largest = adapted.changed_operators()[0];
  EXPECT_EQ(largest.columns, std::vector<std::size_t>{kChanged});
  EXPECT_EQ(largest.name, "edge 0>2 conv3x3");
  EXPECT_NEAR(largest.change_ms, target[kChanged] - 2 * prices[kChanged], 2.0);
  EXPECT_GT(srcc_on_others(adapted, target), 0.99);
}

TEST(AdaProxy, FindsAKindThatIsSlowerEverywhereFromFewSamples) {
  const auto prices = random_prices(1);
  auto target = prices;
  for (std::size_t i = 4; i < target.size(); i += 5) target[i] += 12;  // avg-pool3x3

  const auto adapted =
      adapt(proxy_with(prices), measure_exactly(target, 24).measured(), {.validation = 8}).value();

  ASSERT_FALSE(adapted.changed_operators().empty());
  EXPECT_EQ(adapted.changed_operators()[0].name, "all avg-pool3x3");
  EXPECT_GT(srcc_on_others(adapted, target), 0.99);
}

TEST(AdaProxy, KeepsTheProxyWhenSamplesAgree) {
  const auto prices = random_prices(1);
  const auto adapted =
      adapt(proxy_with(prices), measure_exactly(scaled(prices, 2), 50).measured()).value();
  EXPECT_TRUE(adapted.report().keeps_proxy);
  EXPECT_TRUE(adapted.changed_operators().empty());
  EXPECT_NEAR(adapted.scale(), 2.0, 0.02);
  EXPECT_GT(srcc_on_others(adapted, scaled(prices, 2)), 0.999);
}

TEST(AdaProxy, KeepsTheProxyWhenSamplesAreNoise) {
  const auto prices = random_prices(1);
  auto samples = measure_exactly(prices, 40);
  core::Random random(3);
  for (auto& ms : samples.latency_ms) ms = random.uniform(1, 2);
  const auto adapted = adapt(proxy_with(prices), samples.measured()).value();
  std::vector<double> said(samples.designs.size());
  std::vector<double> proxy(samples.designs.size());
  adapted.predict_ms(samples.designs, said);
  proxy_with(prices).price(samples.designs, proxy);
  EXPECT_TRUE(adapted.report().keeps_proxy);
  EXPECT_NEAR(*core::spearman(said, proxy), 1.0, 1e-9);
}

TEST(AdaProxy, BearsOutliers) {
  const auto prices = random_prices(1);
  auto target = prices;
  for (std::size_t i = 4; i < target.size(); i += 5) target[i] += 8;
  auto samples = measure_exactly(target, 80);
  for (std::size_t i = 0; i < samples.latency_ms.size(); i += 13) samples.latency_ms[i] *= 4;
  const auto adapted = adapt(proxy_with(prices), samples.measured()).value();
  EXPECT_GT(srcc_on_others(adapted, target), 0.97);
}

TEST(AdaProxy, LearnsThatDeadPathsCostOnATargetWhoseProxyRemovesThem) {
  const auto prices = random_prices(1);
  const auto designs = all_cells();
  const auto proxy =
      LinearProxy::fit(table_of(designs, {{"proxy", add_up(designs, "live", prices, 1.0)}}), 0);
  ASSERT_TRUE(proxy);
  const auto adapted = adapt(*proxy, measure_exactly(prices, 80).measured()).value();
  EXPECT_GT(srcc_on_others(adapted, prices), 0.98);
}

TEST(AdaProxy, RefusesMeasurementsThatAreNone) {
  const auto prices = random_prices(1);
  const auto proxy = proxy_with(prices);
  auto samples = measure_exactly(prices, 20);
  EXPECT_THAT(adapt(proxy, samples.measured()).error().message,
              HasSubstr("20 measurements are too few: 20 of them are set aside"));
  samples.latency_ms[3] = std::nan("");
  EXPECT_THAT(adapt(proxy, samples.measured()).error().message,
              HasSubstr("measurement 3 is nan ms"));
  samples.latency_ms.assign(20, 4.0);
  EXPECT_THAT(adapt(proxy, samples.measured(), {.validation = 5}).error().message,
              HasSubstr("all measured latencies are equal"));
}

class AdaptedFile : public testing::Test {
 protected:
  static const AdaptedProxy& made() {
    static const AdaptedProxy adapted = [] {
      const auto prices = random_prices(1);
      auto target = prices;
      target[8] *= 5;
      return *adapt(proxy_with(prices), measure_exactly(target, 70).measured());
    }();
    return adapted;
  }

  /// The error of reading what is written after a change.
  std::string error_after(const std::function<void(nlohmann::json&)>& change) const {
    EXPECT_TRUE(write_adapted(made(), file_));
    auto json = *core::read_json(file_);
    change(json);
    EXPECT_TRUE(core::write_json(file_, json));
    const auto loaded = load_adapted(file_, cells());
    return loaded ? "" : loaded.error().message;
  }

  core::ScratchFolder folder_ = *core::ScratchFolder::create();
  std::filesystem::path file_ = folder_.path() / "a.json";
};

TEST_F(AdaptedFile, ReadsBackAsItWasWritten) {
  const auto& adapted = made();
  ASSERT_TRUE(write_adapted(adapted, file_));
  const auto loaded = load_adapted(file_, cells());
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto designs = all_cells();
  std::vector<double> before(designs.size());
  std::vector<double> after(designs.size());
  adapted.predict_ms(designs, before);
  ASSERT_TRUE(adapted_source(*loaded)->evaluate(designs, after));
  EXPECT_EQ(before, after);
  EXPECT_EQ(loaded->report().proxy, "proxy");
  ASSERT_EQ(loaded->changed_operators().size(), adapted.changed_operators().size());
  EXPECT_EQ(loaded->changed_operators()[0].name, adapted.changed_operators()[0].name);
}

TEST_F(AdaptedFile, KeepsTheLatenciesOfAProxyThatIsKnownWhole) {
  const auto prices = random_prices(1);
  const auto designs = all_cells();
  const auto proxy =
      *LinearProxy::fit(table_of(designs, {{"proxy", add_up(designs, "live", prices, 1.0)}}), 0);
  const auto adapted = *adapt(proxy, measure_exactly(prices, 80).measured());
  ASSERT_TRUE(write_adapted(adapted, file_));
  const auto loaded = load_adapted(file_, cells());
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->parts().proxy_ms, adapted.parts().proxy_ms);
  EXPECT_EQ(loaded->parts().proxy_ms.size(), 15625u);
}

TEST_F(AdaptedFile, IsRefusedForAnotherSpaceOrVersion) {
  ASSERT_TRUE(write_adapted(made(), file_));
  const auto other = load_adapted(file_, **space::find_space("fbnet"));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("made for the space nasbench201, not for fbnet"));
  EXPECT_THAT(error_after([](auto& json) { json["space_version"] = 99; }),
              HasSubstr("made for version 99 of the space nasbench201"));
  EXPECT_THAT(error_after([](auto& json) { json["version"] = 2; }),
              HasSubstr("version 2 is newer"));
}

TEST_F(AdaptedFile, IsRefusedByTheFieldThatIsDamaged) {
  EXPECT_THAT(error_after([](auto& json) { json["placed"].erase(0); }),
              HasSubstr("placed: 29 numbers, expected 30"));
  EXPECT_THAT(error_after([](auto& json) { json["proxy_ms"] = {1, 2}; }),
              HasSubstr("proxy_ms: 2 numbers, expected 15625"));
  EXPECT_THAT(error_after([](auto& json) { json.erase("alpha"); }), HasSubstr("alpha"));
  EXPECT_THAT(error_after([](auto& json) { json["format"] = "fleetfit-predictor"; }),
              HasSubstr("format is 'fleetfit-predictor'"));
}

}  // namespace
}  // namespace fleetfit::transfer
