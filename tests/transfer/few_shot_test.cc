#include "fleetfit/transfer/few_shot.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "tests/shared_data.h"

namespace fleetfit::transfer {
namespace {

using testing::HasSubstr;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kReferences = 5;

/// Devices on which each operation of a cell costs something, by chance; the last one is the
/// target. `noise` is the relative deviation of its measurements.
struct Fleet {
  explicit Fleet(double noise = 0) {
    space::DesignTable& t = table;
    core::Random random(11);
    for (std::size_t device = 0; device <= kReferences; ++device) {
      t.columns.push_back("device" + std::to_string(device));
      std::array<double, 5> costs = {0, 0.2, 2, 5, 1};
      for (double& cost : costs) cost *= random.uniform(0.5, 2);
      auto& column = t.values.emplace_back();
      for (std::size_t row = 0; row < t.designs.size(); ++row) {
        double ms = 3;
        for (const auto choice : t.designs[row]) ms += costs[choice];
        if (device == kReferences) truth.push_back(ms);
        column.push_back(ms * std::exp(random.normal() * (device == kReferences ? noise : 0.01)));
      }
    }
  }

  const std::vector<double>& target() const { return table.values.back(); }

  Result<KnownDevices> learn(const FewShotOptions& options = {.reference_samples = 200}) const {
    const std::vector<std::size_t> references = {0, 1, 2, 3, 4};
    return KnownDevices::learn(table, references, options);
  }

  std::unique_ptr<const FewShotModel> fit(std::size_t samples) const {
    const auto known = learn().value();
    space::Population designs(table.designs.genes());
    std::vector<double> latencies;
    for (const auto row : known.choose(table.designs, samples)) {
      designs.add(table.designs[row]);
      latencies.push_back(target()[row]);
    }
    return known.fit(designs, latencies).value();
  }

  std::vector<double> predictions(const FewShotModel& model) const {
    std::vector<double> out(table.designs.size());
    EXPECT_TRUE(model.evaluate(table.designs, out));
    return out;
  }

  static const space::Space& cells() { return **space::find_space("nasbench201"); }

  space::DesignTable table{.name = "fleet.csv",
                           .space = &cells(),
                           .designs = space::sample_designs(cells(), {.count = 600}).value()};
  std::vector<double> truth;
};

TEST(FewShot, PredictsADeviceOfWhichEightDesignsWereMeasured) {
  const Fleet fleet;
  const auto model = fleet.fit(8);
  const auto predicted = fleet.predictions(*model);
  EXPECT_GT(core::spearman(predicted, fleet.target()).value(), 0.995);
  for (std::size_t i = 0; i < predicted.size(); ++i)
    ASSERT_NEAR(predicted[i] / fleet.target()[i], 1, 0.15);
  EXPECT_GT(model->verdict().ceiling, 0.99);
}

TEST(FewShot, IntervalsHoldNineOfTenMeasurements) {
  const Fleet fleet(0.1);
  std::vector<PredictedLatency> ranges(fleet.table.designs.size());
  fleet.fit(30)->predict(fleet.table.designs, ranges);
  double inside = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ASSERT_LT(ranges[i].low_ms, ranges[i].ms);
    ASSERT_LT(ranges[i].ms, ranges[i].high_ms);
    inside += ranges[i].low_ms <= fleet.target()[i] && fleet.target()[i] <= ranges[i].high_ms;
  }
  EXPECT_NEAR(inside / static_cast<double>(ranges.size()), 0.9, 0.08);
}

TEST(FewShot, MoreSamplesOfANoisyDeviceDoNoHarm) {
  const Fleet fleet(0.2);
  const auto quality = [&](std::size_t samples) {
    return core::spearman(fleet.predictions(*fleet.fit(samples)), fleet.truth).value();
  };
  const double few = quality(10);
  EXPECT_GT(quality(30), few - 0.01);
  EXPECT_GT(quality(60), few - 0.01);
}

TEST(FewShot, TellsTheCeilingThatNoiseSets) {
  const Fleet fleet(0.2);
  const double ceiling = core::spearman(fleet.truth, fleet.target()).value();
  EXPECT_NEAR(fleet.fit(60)->verdict().ceiling, ceiling, 0.06);
  EXPECT_GT(Fleet().fit(60)->verdict().ceiling, ceiling + 0.05);
}

TEST(FewShot, OneWildMeasurementChangesLittle) {
  const Fleet fleet;
  const auto known = fleet.learn().value();
  const auto rows = known.choose(fleet.table.designs, 15);
  space::Population designs(fleet.table.designs.genes());
  std::vector<double> latencies;
  for (const auto row : rows) {
    designs.add(fleet.table.designs[row]);
    latencies.push_back(fleet.target()[row]);
  }
  latencies[4] *= 20;
  const auto model = known.fit(designs, latencies).value();
  EXPECT_GT(core::spearman(fleet.predictions(*model), fleet.truth).value(), 0.97);
}

TEST(FewShot, SameSeedSameChoiceOtherSeedOtherChoice) {
  const Fleet fleet;
  const auto choice = [&](std::uint64_t seed) {
    return fleet.learn({.seed = seed, .reference_samples = 100, .candidates = 100})
        .value()
        .choose(fleet.table.designs, 10);
  };
  EXPECT_EQ(choice(1), choice(1));
  EXPECT_NE(choice(1), choice(2));
  auto chosen = choice(3);
  std::ranges::sort(chosen);
  EXPECT_EQ(std::ranges::adjacent_find(chosen), chosen.end());
}

TEST(FewShot, NamesNextDesignsAmongTheCandidates) {
  const Fleet fleet(0.1);
  const auto next = fleet.fit(5)->next(fleet.table.designs.batch().part(0, 50), 7);
  EXPECT_THAT(next, testing::SizeIs(7));
  EXPECT_THAT(next, testing::Each(testing::Lt(50u)));
}

TEST(FewShot, EmptyCellsOfReferencesAreBorne) {
  Fleet fleet;
  for (std::size_t row = 0; row < 300; ++row) fleet.table.values[row % 2][row] = kNone;
  EXPECT_GT(core::spearman(fleet.predictions(*fleet.fit(10)), fleet.target()).value(), 0.99);
}

TEST(FewShot, NamesAReferenceThatCannotBeUsed) {
  Fleet fleet;
  fleet.table.values[2].assign(600, 4);
  EXPECT_THAT(fleet.learn().error().message,
              HasSubstr("fleet.csv: reference device2 has the same latency"));
  fleet.table.values[2].assign(600, kNone);
  EXPECT_THAT(fleet.learn().error().message,
              HasSubstr("reference device2 has 0 measured designs, 20 are needed"));
  const std::vector<std::size_t> twice = {1, 3, 1};
  EXPECT_THAT(KnownDevices::learn(fleet.table, twice).error().message,
              HasSubstr("reference device1 is given twice"));
  EXPECT_FALSE(KnownDevices::learn(fleet.table, {}));
}

TEST(FewShot, RefusesMeasurementsThatSayNothing) {
  const Fleet fleet;
  const auto known = fleet.learn().value();
  const auto fit = [&](const std::vector<double>& latencies) {
    const auto fitted = known.fit(fleet.table.designs.batch().part(0, latencies.size()), latencies);
    return fitted ? std::string() : fitted.error().message;
  };
  EXPECT_THAT(fit({1, 2}), HasSubstr("2 measured designs are too few"));
  EXPECT_THAT(fit({1, kNone, 2}), HasSubstr("not positive and finite"));
  EXPECT_THAT(fit({1, -1, 2}), HasSubstr("not positive and finite"));
  EXPECT_THAT(fit({3, 3, 3}), HasSubstr("all measured latencies are equal"));
}

TEST(FewShot, OneReferenceIsEnoughToStart) {
  const Fleet fleet;
  const std::vector<std::size_t> references = {0};
  const auto known = KnownDevices::learn(fleet.table, references).value();
  EXPECT_THAT(known.choose(fleet.table.designs, 5), testing::SizeIs(5));
}

TEST(FewShot, TenMeasurementsOrderAllDesignsOnARealDevice) {
  const auto folder = shared_data();
  if (!folder) GTEST_SKIP() << "the folder of public data is not there";
  std::vector<std::string> columns = {"1080ti_1",    "1080ti_32",      "1080ti_256",
                                      "silver_4114", "silver_4210r",   "samsung_a50",
                                      "pixel3",      "essential_ph_1", "samsung_s7"};
  const std::vector<std::size_t> references = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  columns.emplace_back("gold_6226");
  const auto table = space::read_design_table(*folder / "latency/nasbench201.csv", Fleet::cells(),
                                              {.columns = columns})
                         .value();
  const auto known = KnownDevices::learn(table, references).value();
  space::Population designs(table.designs.genes());
  std::vector<double> latencies;
  for (const auto row : known.choose(table.designs, 10)) {
    designs.add(table.designs[row]);
    latencies.push_back(table.values.back()[row]);
  }
  std::vector<double> predicted(table.designs.size());
  ASSERT_TRUE(known.fit(designs, latencies).value()->evaluate(table.designs, predicted));
  EXPECT_GT(core::spearman(predicted, table.values.back()).value(), 0.96);  // HELP: 0.989
}

}  // namespace
}  // namespace fleetfit::transfer
