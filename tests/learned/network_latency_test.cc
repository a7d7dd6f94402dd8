#include "fleetfit/learned/network_latency.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/graph/net_builder.h"
#include "fleetfit/graph/zoo.h"

namespace fleetfit::learned {
namespace {

using testing::HasSubstr;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

/// A network by its operations in convolutions and in dense layers.
std::vector<double> network(double conv, double dense) {
  std::vector<double> features(network_feature_names().size());
  features[0] = std::log1p(conv / 1000);
  features[8] = std::log1p(dense / 1000);
  return features;
}

/// Devices with a speed for convolutions and another one for dense layers. Their data sheet tells
/// the first alone.
struct World {
  std::vector<std::pair<double, double>> networks;
  std::vector<std::pair<double, double>> speeds;
  NetworkTable table;

  double latency_ms(std::size_t device, std::pair<double, double> work) const {
    return work.first / speeds[device].first + work.second / speeds[device].second;
  }

  World(std::size_t devices, std::size_t network_count) {
    core::Random random(7);
    for (std::size_t i = 0; i < network_count; ++i) {
      networks.emplace_back(1e6 * std::exp(random.uniform(0, 3)),
                            1e5 * std::exp(random.uniform(0, 5)));
      table.networks.push_back("network " + std::to_string(i));
      table.network_features.push_back(network(networks[i].first, networks[i].second));
    }
    table.devices = {.name = "devices",
                     .columns = {{.kind = FeatureKind::specification, .name = "speed"}}};
    for (std::size_t i = 0; i < devices; ++i) {
      const double speed = 1e6 * std::exp(random.uniform(0, 3));
      speeds.emplace_back(speed, speed * std::exp(random.normal()));
      table.devices.devices.push_back("device " + std::to_string(i));
      table.devices.values.push_back(speed);
      auto& row = table.latency_ms.emplace_back();
      for (const auto& work : networks) row.push_back(latency_ms(i, work));
    }
  }

  /// The table without its last device.
  NetworkTable without_last() const {
    auto rest = table;
    rest.devices.devices.pop_back();
    rest.devices.values.pop_back();
    rest.latency_ms.pop_back();
    return rest;
  }
};

double mean_error(const std::vector<NetworkPrediction>& predictions,
                  const std::vector<double>& truth) {
  double sum = 0;
  for (std::size_t i = 0; i < truth.size(); ++i)
    sum += std::abs(std::log(predictions[i].latency_ms / truth[i]));
  return sum / static_cast<double>(truth.size());
}

TEST(NetworkLatency, IsToldFromTheDataSheetAndBetterWithEachReference) {
  const World world(40, 12);
  const auto model = *NetworkLatencyModel::fit(world.without_last());
  const auto& truth = world.table.latency_ms.back();
  const auto order = model.best_references(3);

  std::vector<NetworkReference> references;
  std::vector<double> errors;
  for (std::size_t count = 0; count <= 3; ++count) {
    errors.push_back(mean_error(*model.predict(world.table.devices, 39, references), truth));
    if (count < 3) references.push_back({order[count], truth[order[count]]});
  }
  EXPECT_LT(errors[0], 1.0);
  EXPECT_LT(errors[1], errors[0]);
  EXPECT_LT(errors[2], errors[0] / 2);
  EXPECT_LT(errors[3], 0.1);
}

TEST(NetworkLatency, IsBelievedWhereItWasMeasured) {
  const World world(40, 12);
  const auto model = *NetworkLatencyModel::fit(world.without_last());
  const std::vector<NetworkReference> references = {{4, world.table.latency_ms.back()[4]}};
  const auto found = (*model.predict(world.table.devices, 39, references))[4];
  EXPECT_NEAR(found.latency_ms / references[0].latency_ms, 1, 0.02);
  EXPECT_LT(found.high_ms / found.low_ms, 1.2);
}

TEST(NetworkLatency, LiesInItsRangeNineTimesOutOfTen) {
  const World world(120, 12);
  auto known = world.table;
  known.devices.devices.resize(60);
  known.devices.values.resize(60);
  known.latency_ms.resize(60);
  const auto model = *NetworkLatencyModel::fit(known);
  std::size_t inside = 0;
  for (std::size_t device = 60; device < 120; ++device) {
    const auto found = *model.predict(world.table.devices, device);
    for (std::size_t i = 0; i < 12; ++i) {
      const double truth = world.table.latency_ms[device][i];
      if (truth >= found[i].low_ms && truth <= found[i].high_ms) ++inside;
    }
  }
  EXPECT_GT(inside, 60 * 12 * 8 / 10);
  EXPECT_LT(inside, 60 * 12 * 99 / 100);
}

TEST(NetworkLatency, OfANetworkThatNobodyHasMeasuredIsToldFromOthers) {
  const World world(40, 30);
  const auto model = *NetworkLatencyModel::fit(world.without_last());
  std::vector<NetworkReference> references;
  for (const auto i : model.best_references(5))
    references.push_back({i, world.table.latency_ms.back()[i]});
  core::Random random(11);
  std::vector<double> truth;
  std::vector<double> found;
  for (int i = 0; i < 20; ++i) {
    const std::pair work(1e6 * std::exp(random.uniform(0, 3)),
                         1e5 * std::exp(random.uniform(0, 5)));
    truth.push_back(world.latency_ms(39, work));
    found.push_back(
        model.predict_unseen(world.table.devices, 39, references, network(work.first, work.second))
            ->latency_ms);
  }
  EXPECT_GT(*core::spearman(found, truth), 0.95);
}

TEST(NetworkLatency, CanBeLearnedFromATableWithHoles) {
  const World world(40, 12);
  auto table = world.without_last();
  core::Random random(5);
  for (auto& row : table.latency_ms)
    for (std::size_t i = 1; i < row.size(); ++i)
      if (random.chance(0.3)) row[i] = kMissing;
  for (std::size_t i = 0; i < 12; ++i) table.latency_ms[0][i] = world.table.latency_ms[0][i];
  const auto model = *NetworkLatencyModel::fit(table);
  std::vector<NetworkReference> references;
  for (const auto i : model.best_references(3))
    references.push_back({i, world.table.latency_ms.back()[i]});
  EXPECT_LT(mean_error(*model.predict(world.table.devices, 39, references),
                       world.table.latency_ms.back()),
            0.15);
}

TEST(NetworkLatency, RefusesTablesThatMakeNoSense) {
  const auto refusal = [](auto change) {
    World world(6, 4);
    change(world.table);
    const auto model = NetworkLatencyModel::fit(world.table);
    return model ? "learned" : model.error().message;
  };
  EXPECT_EQ(refusal([](NetworkTable&) {}), "learned");
  EXPECT_THAT(refusal([](NetworkTable& table) { table.networks.resize(2); }), HasSubstr("too few"));
  EXPECT_THAT(refusal([](NetworkTable& table) { table.latency_ms.pop_back(); }),
              HasSubstr("as many latencies"));
  EXPECT_THAT(refusal([](NetworkTable& table) { table.latency_ms[1].pop_back(); }),
              HasSubstr("a latency for each network"));
  EXPECT_THAT(refusal([](NetworkTable& table) { table.network_features[1].pop_back(); }),
              HasSubstr("number of features"));
  EXPECT_THAT(refusal([](NetworkTable& table) { table.latency_ms[1][2] = -1; }),
              HasSubstr("'device 1' is not positive"));
  EXPECT_THAT(refusal([](NetworkTable& table) { table.latency_ms[1].assign(4, kMissing); }),
              HasSubstr("nothing was measured on the device 'device 1'"));
  EXPECT_THAT(refusal([](NetworkTable& table) {
                for (auto& row : table.latency_ms) row[2] = kMissing;
              }),
              HasSubstr("'network 2' was measured nowhere"));
}

TEST(NetworkLatency, RefusesReferencesThatMakeNoSense) {
  const World world(6, 4);
  const auto model = *NetworkLatencyModel::fit(world.table);
  const auto refusal = [&](std::vector<NetworkReference> references) {
    return model.predict(world.table.devices, 0, references).error().message;
  };
  EXPECT_THAT(refusal({{4, 1}}), HasSubstr("none of the model's networks"));
  EXPECT_THAT(refusal({{1, 1}, {1, 2}}), HasSubstr("'network 1' is there twice"));
  EXPECT_THAT(refusal({{1, 0}}), HasSubstr("'network 1' is not positive"));
  EXPECT_THAT(model.predict_unseen(world.table.devices, 0, {}, {}).error().message,
              HasSubstr("number of features"));
}

TEST(NetworkFeatures, AddUpTheWorkOfEachKind) {
  const auto graph = *graph::build_zoo_network("mobilenet_v2");
  const auto features = *network_features(graph, 0.5);
  const auto names = network_feature_names();
  ASSERT_EQ(features.size(), names.size());
  const auto value = [&](std::string_view name) {
    return features[static_cast<std::size_t>(std::ranges::find(names, name) - names.begin())];
  };
  // 17 blocks with a depthwise convolution each, all but one with two others, and two more around.
  EXPECT_NEAR(std::expm1(value("depthwise_count")), 17, 1e-9);
  EXPECT_NEAR(std::expm1(value("conv_count")), 16 * 2 + 1 + 2, 1e-9);
  EXPECT_NEAR(std::expm1(value("dense_flops")) * 1000, 2 * 1280 * 1000, 1e-3);
  EXPECT_EQ(value("int8_share"), 0.5);
}

}  // namespace
}  // namespace fleetfit::learned
