// How long it takes to make many synthetic devices with the latencies of ten reference designs, and
// how like real devices they are.
//   synthetic_devices_bench TABLE.csv SPACE [COUNT]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/learned/device_features.h"
#include "fleetfit/learned/synthetic_devices.h"

namespace fleetfit::bench {
namespace {

std::vector<std::size_t> numbers_below(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<double> correlations(const std::vector<double>& device, const space::DesignTable& table,
                                 const std::vector<std::size_t>& rows, std::size_t itself) {
  std::vector<double> found;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i == itself) continue;
    std::vector<double> other;
    for (const auto row : rows) other.push_back(table.values[i][row]);
    found.push_back(*core::spearman(device, other));
  }
  return found;
}

void print_range(const char* name, const std::vector<double>& values) {
  fmt::print(
      "{:<10} rank correlations with real devices: 2 % {:.2f}, 25 % {:.2f}, median {:.2f}, "
      "75 % {:.2f}, 98 % {:.2f}\n",
      name, *core::quantile(values, 0.02), *core::quantile(values, 0.25), *core::median(values),
      *core::quantile(values, 0.75), *core::quantile(values, 0.98));
}

void print_likeness(const space::DesignTable& table, const learned::SyntheticDevices& devices) {
  auto rows = numbers_below(table.designs.size());
  core::Random(1).shuffle(rows);
  rows.resize(std::min<std::size_t>(rows.size(), 300));
  std::vector<double> real;
  std::vector<double> made;
  std::vector<double> latencies(rows.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    for (std::size_t row = 0; row < rows.size(); ++row) latencies[row] = table.values[i][rows[row]];
    for (const double value : correlations(latencies, table, rows, i)) real.push_back(value);
  }
  for (std::uint64_t index = 0; index < 200; ++index) {
    devices.latencies_ms(devices.device(index), rows, latencies);
    for (const double value : correlations(latencies, table, rows, table.columns.size()))
      made.push_back(value);
  }
  print_range("real", real);
  print_range("synthetic", made);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: synthetic_devices_bench TABLE.csv SPACE [COUNT]\n");
    return 2;
  }
  const auto space = space::find_space(arguments[1]);
  const auto table = space.and_then(
      [&](const auto* found) { return space::read_design_table(arguments[0], *found); });
  if (!table) {
    fmt::print(stderr, "{}\n", table.error().message);
    return 2;
  }
  const auto devices =
      learned::SyntheticDevices::learn(*table, numbers_below(table->columns.size())).value();
  const auto rows = learned::choose_references(
                        *table, {.count = std::min<std::size_t>(10, table->columns.size() - 1)})
                        .value();
  const std::size_t count = arguments.size() > 2 ? std::stoul(arguments[2]) : 1'000'000;
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> latencies(rows.size());
  double sum = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    devices.latencies_ms(devices.device(index), rows, latencies);
    sum += latencies[0];
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  fmt::print(
      "{} devices with {} reference latencies each in {:.2f} s on one thread; mean of the "
      "first {:.2f} ms\n",
      count, rows.size(), passed.count(), sum / static_cast<double>(count));
  print_likeness(*table, devices);
  return 0;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  return fleetfit::bench::run(std::vector<std::string>(argv + 1, argv + argc));
}
