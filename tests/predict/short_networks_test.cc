#include "predict/kind_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "fleetfit/core/statistics.h"
#include "tests/predict/profiles.h"

namespace fleetfit::predict {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

/// Latencies from 1 to 64 ms, as far apart from each other as factors go; 8 is the middle.
struct Foretold {
  std::vector<double> predicted_ms;
  std::vector<double> measured_ms;
  std::vector<int> fold;

  Foretold(int networks, const std::function<double(double)>& measured) {
    for (int n = 0; n < networks; ++n) {
      predicted_ms.push_back(std::exp2(6.0 * n / (networks - 1)));
      measured_ms.push_back(measured(predicted_ms.back()));
      fold.push_back(n % 5);
    }
  }

  FittedShortNetworks fit_all() const {
    return fit_short_networks(
        {.predicted_ms = predicted_ms, .measured_ms = measured_ms, .fold = fold, .folds = 5});
  }
  ShortNetworks fit() const { return fit_all().law; }
};

double faster_below_8(double ms) { return ms < 8 ? ms * std::pow(ms / 8, 0.1) : ms; }

TEST(ShortNetworks, AreFoundWithWhatTheyGain) {
  const auto law = Foretold(201, faster_below_8).fit();
  EXPECT_NEAR(law.below_ms, 8, 1e-9);
  EXPECT_NEAR(law.power, 0.1, 1e-9);
  EXPECT_DOUBLE_EQ(law.least_ms, 1);
}

TEST(ShortNetworks, AreFoundBesideAnErrorOfAll) {
  const auto law = Foretold(201, [](double ms) { return 0.98 * faster_below_8(ms); }).fit();
  EXPECT_NEAR(law.power, 0.1, 0.03);
  EXPECT_NEAR(law.factor(1), std::pow(1.0 / 8, 0.1), 0.03);
}

TEST(ShortNetworks, GainNothingWhereAllAreOffAlike) {
  EXPECT_EQ(Foretold(201, [](double ms) { return 1.1 * ms; }).fit().power, 0);
  EXPECT_EQ(Foretold(201, [](double ms) { return ms; }).fit().power, 0);
}

TEST(ShortNetworks, AreNeverSlower) {
  EXPECT_EQ(Foretold(201, [](double ms) { return ms * ms / faster_below_8(ms); }).fit().power, 0);
}

TEST(ShortNetworks, AreLittleFasterByChance) {
  std::vector<double> of_few;
  std::vector<double> of_many;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    core::Random random(seed);
    const auto noisy = [&](double ms) { return ms * std::exp(0.05 * random.normal()); };
    of_few.push_back(Foretold(30, noisy).fit().factor(4));
    of_many.push_back(Foretold(900, noisy).fit().factor(4));
  }
  EXPECT_GT(*core::mean(of_few), 0.98);
  EXPECT_GT(*core::mean(of_many), 0.995);
}

TEST(ShortNetworks, AreToldByThirtyNetworks) {
  std::vector<double> powers;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    core::Random random(seed);
    const Foretold noisy(
        30, [&](double ms) { return faster_below_8(ms) * std::exp(0.05 * random.normal()); });
    powers.push_back(noisy.fit().power);
  }
  EXPECT_NEAR(*core::median(powers), 0.1, 0.03);
}

TEST(ShortNetworks, OfEachFoldAreFittedToTheOthers) {
  Foretold networks(201, faster_below_8);
  networks.measured_ms[0] /= 1.5;  // the shortest network, in fold 0
  const auto fitted = networks.fit_all();
  const auto without_it = Foretold(201, faster_below_8).fit_all();
  EXPECT_GT(fitted.law.power, without_it.law.power);
  EXPECT_DOUBLE_EQ(fitted.held_out_factor[0], without_it.held_out_factor[0]);
  EXPECT_LT(fitted.held_out_factor[1], without_it.held_out_factor[1]);
}

TEST(ShortNetworks, AreNoneOfAnyFoldIfThereIsNoLaw) {
  EXPECT_THAT(Foretold(201, [](double ms) { return 1.1 * ms; }).fit_all().held_out_factor,
              Each(1.0));
}

TEST(ShortNetworks, NeedEnoughNetworksToTell) {
  EXPECT_EQ(Foretold(19, faster_below_8).fit().power, 0);
  EXPECT_GT(Foretold(21, faster_below_8).fit().power, 0);
}

TEST(ShortNetworks, GainByTheirLatencyDownToTheShortestMeasured) {
  const ShortNetworks law{.below_ms = 8, .least_ms = 2, .power = 0.5};
  EXPECT_EQ(law.factor(9), 1);
  EXPECT_EQ(law.factor(8), 1);
  EXPECT_DOUBLE_EQ(law.factor(4), std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(law.factor(2), 0.5);
  EXPECT_DOUBLE_EQ(law.factor(0.1), 0.5);
  EXPECT_EQ(ShortNetworks{}.factor(0.1), 1);
}

/// Networks of 1 to 40 kernels, the short ones of which are faster than their kernels suggest.
std::vector<NetworkSample> networks_of_all_lengths(std::uint64_t seed) {
  std::vector<NetworkSample> all;
  for (int kernels = 1; kernels <= 40; ++kernels) {
    for (auto& network :
         test::make_profiles({.networks = 5,
                              .kernels = kernels,
                              .overhead_ms = 0,
                              .seed = seed * 100 + static_cast<std::uint64_t>(kernels)})) {
      const double factor = std::pow(std::min(1.0, network.latency_ms / 100), 0.15);
      for (auto& kernel : network.kernels) kernel.ms *= factor;
      network.latency_ms *= factor;
      all.push_back(std::move(network));
    }
  }
  return all;
}

OperatorPredictor trained_on_all_lengths() {
  core::ThreadPool pool(1);
  return train_operator_predictor(networks_of_all_lengths(1), {.method = Method::lasso}, pool)
      .value();
}

TEST(ShortNetworks, HaveFasterKernelsThatStillAddUp) {
  const auto predictor = trained_on_all_lengths();
  double off = 0;
  int count = 0;
  for (const auto& network : networks_of_all_lengths(2)) {
    const auto price = predictor.price(test::kernels_of(network)).value();
    double sum = price.overhead_ms;
    for (const auto& kernel : price.kernels) {
      EXPECT_LE(kernel.interval90.low, kernel.ms);
      EXPECT_GE(kernel.interval90.high, kernel.ms);
      sum += kernel.ms;
    }
    EXPECT_DOUBLE_EQ(sum, price.latency_ms);
    if (network.latency_ms > 20) continue;
    off += price.latency_ms / network.latency_ms - 1;
    ++count;
  }
  ASSERT_GT(count, 10);
  EXPECT_NEAR(off / count, 0, 0.03);
}

TEST(ShortNetworks, OfAFileMustMakeSense) {
  auto json = trained_on_all_lengths().to_json();
  ASSERT_TRUE(json.contains("short_networks"));
  const auto problem = [&](const char* field, double value) {
    auto damaged = json;
    damaged["short_networks"][field] = value;
    const auto read = kernel_predictor_from_json(core::JsonView(damaged, "p.json"));
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(problem("least_ms", 0), HasSubstr("p.json: short_networks: least_ms"));
  EXPECT_THAT(problem("least_ms", 1e9), HasSubstr("short_networks"));
  EXPECT_THAT(problem("power", 2), HasSubstr("short_networks"));
  EXPECT_THAT(problem("power", -1), HasSubstr("short_networks.power: is -1, below zero"));
  json.erase("short_networks");  // as in files that were made before
  EXPECT_TRUE(kernel_predictor_from_json(core::JsonView(json, "p.json")));
}

}  // namespace
}  // namespace fleetfit::predict
