#include "fleetfit/learned/synthetic_devices.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "tests/shared_data.h"

namespace fleetfit::learned {
namespace {

using testing::HasSubstr;

const space::Space& cells() { return **space::find_space("nasbench201"); }

/// Devices that add up a price for each kind of operator, with noise.
space::DesignTable made_table(std::size_t designs, std::size_t devices) {
  space::DesignTable table{.name = "made", .space = &cells(), .designs = space::Population(6)};
  table.designs = *space::sample_designs(cells(), {.count = designs});
  core::Random random(3);
  for (std::size_t device = 0; device < devices; ++device) {
    std::vector<double> prices(5);
    for (auto& price : prices) price = random.uniform(0.2, 4);
    table.columns.push_back("device " + std::to_string(device));
    auto& column = table.values.emplace_back();
    for (std::size_t row = 0; row < designs; ++row) {
      double sum = 2;
      for (const auto op : table.designs[row]) sum += prices[op];
      column.push_back(sum * std::exp(0.01 * random.normal()));
    }
  }
  return table;
}

std::vector<std::size_t> first(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<double> latencies(const SyntheticDevices& devices, std::uint64_t index,
                              const std::vector<std::size_t>& rows) {
  std::vector<double> out(rows.size());
  devices.latencies_ms(devices.device(index), rows, out);
  return out;
}

TEST(SyntheticDevices, AreMixturesOfRealOnesInLogarithms) {
  const auto table = made_table(200, 4);
  const auto devices =
      *SyntheticDevices::learn(table, first(4), {.scale = 0, .tilt = 0, .noise = 0});

  for (std::uint64_t index = 0; index < 20; ++index) {
    const auto device = devices.device(index);
    double total = 0;
    for (const auto& parent : device.parents) total += parent.weight;
    EXPECT_NEAR(total, 1, 1e-12);
    const auto found = latencies(devices, index, first(200));
    for (std::size_t row = 0; row < 200; ++row) {
      double product = 1;
      for (const auto& parent : device.parents)
        product *= std::pow(table.values[parent.device][row], parent.weight);
      ASSERT_NEAR(found[row], product, 1e-9 * product);
    }
  }
}

TEST(SyntheticDevices, DependOnTheirIndexAndTheDesignAlone) {
  const auto table = made_table(200, 4);
  const auto devices = *SyntheticDevices::learn(table, first(4));
  const auto again = *SyntheticDevices::learn(table, first(4));

  const auto all = latencies(devices, 7, first(200));
  EXPECT_EQ(latencies(again, 7, {120})[0], all[120]);
  EXPECT_NE(latencies(devices, 8, {120})[0], all[120]);
}

TEST(SyntheticDevices, LackWhatAParentLacks) {
  auto table = made_table(200, 3);
  for (auto& column : table.values) column[5] = std::nan("");
  const auto devices = *SyntheticDevices::learn(table, first(3));
  EXPECT_TRUE(std::isnan(latencies(devices, 0, {5})[0]));
  EXPECT_FALSE(std::isnan(latencies(devices, 0, {6})[0]));
}

TEST(SyntheticDevices, NeedEnoughToLearnFrom) {
  const auto refusal = [](const space::DesignTable& table, std::vector<std::size_t> columns) {
    const auto devices = SyntheticDevices::learn(table, columns);
    return devices ? "learned" : devices.error().message;
  };
  EXPECT_EQ(refusal(made_table(200, 3), {0, 1}),
            "made: synthetic devices need three real ones, there are 2");
  EXPECT_EQ(refusal(made_table(200, 3), {0, 1, 1}), "made: the device 'device 1' is given twice");
  EXPECT_THAT(refusal(made_table(49, 3), {0, 1, 2}), HasSubstr("need 50 designs"));
}

std::vector<double> pick(const std::vector<double>& values, const std::vector<std::size_t>& rows) {
  std::vector<double> picked;
  for (const auto row : rows) picked.push_back(values[row]);
  return picked;
}

/// Rank correlations of a device with all real ones but itself.
std::vector<double> likeness(const std::vector<double>& device, const space::DesignTable& table,
                             const std::vector<std::size_t>& rows, std::size_t itself) {
  std::vector<double> found;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    if (i != itself) found.push_back(*core::spearman(device, pick(table.values[i], rows)));
  return found;
}

/// Nearly all correlations are about as high as the lowest of two real devices, their median lies
/// well inside of the range of real ones, and nearly every device has a real one that is as near as
/// the loneliest real one has.
void expect_like_real_ones(const space::DesignTable& table) {
  std::vector<std::size_t> rows = first(table.designs.size());
  core::Random(1).shuffle(rows);
  rows.resize(std::min<std::size_t>(rows.size(), 300));
  std::vector<double> real;
  double loneliest = 1;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto found = likeness(pick(table.values[i], rows), table, rows, i);
    real.insert(real.end(), found.begin(), found.end());
    loneliest = std::min(loneliest, std::ranges::max(found));
  }
  const auto devices = *SyntheticDevices::learn(table, first(table.columns.size()));
  constexpr std::size_t kDevices = 200;
  std::vector<double> made;
  std::size_t lonely = 0;
  for (std::uint64_t index = 0; index < kDevices; ++index) {
    const auto found = likeness(latencies(devices, index, rows), table, rows, table.columns.size());
    made.insert(made.end(), found.begin(), found.end());
    if (std::ranges::max(found) < loneliest) ++lonely;
  }
  EXPECT_GE(*core::quantile(made, 0.05), std::ranges::min(real) - 0.1);
  EXPECT_GE(*core::median(made), *core::quantile(real, 0.25));
  EXPECT_LE(*core::median(made), *core::quantile(real, 0.9));
  EXPECT_LE(lonely, kDevices / 10) << "than " << loneliest;
}

TEST(SyntheticDevices, AreAsLikeRealOnesAsThoseAreAmongEachOther) {
  expect_like_real_ones(made_table(300, 10));
}

TEST(SyntheticDevices, AreAsLikePublishedDevicesAsThoseAreAmongEachOther) {
  const auto folder = shared_data();
  if (!folder) GTEST_SKIP() << "the shared data is not there";
  for (const auto& [file, space] :
       {std::pair("nasbench201.csv", "nasbench201"), std::pair("fbnet.csv", "fbnet"),
        std::pair("ofa.csv", "ofa-mbv3")}) {
    SCOPED_TRACE(file);
    const auto table =
        space::read_design_table(*folder / "latency" / file, **space::find_space(space));
    ASSERT_TRUE(table) << table.error().message;
    expect_like_real_ones(*table);
  }
}

}  // namespace
}  // namespace fleetfit::learned
