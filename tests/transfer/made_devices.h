#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/linear_proxy.h"

/// Devices that follow a law known to the test.
namespace fleetfit::transfer {

inline const space::Space& cells() { return **space::find_space("nasbench201"); }

/// Every cell of NAS-Bench-201, in order.
inline space::Population all_cells() { return all_designs(cells())->designs(); }

/// A price between 1 and 3 for each operator at each place; `none` is free.
inline std::vector<double> random_prices(std::uint64_t seed) {
  core::Random random(seed);
  std::vector<double> prices(operator_columns(cells()));
  for (std::size_t i = 0; i < prices.size(); ++i) prices[i] = i % 5 == 0 ? 0 : random.uniform(1, 3);
  return prices;
}

/// By the encoding's matrix, as a reader of the documentation would do it.
inline std::vector<double> add_up(const space::Population& designs, const char* encoding,
                                  std::span<const double> prices, double constant) {
  const std::size_t number = *cells().find_encoding(encoding);
  const std::size_t width = cells().encodings()[number].features.size();
  std::vector<double> rows(designs.size() * width);
  cells().encode(designs, number, rows);
  std::vector<double> sums(designs.size(), constant);
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (std::size_t j = 0; j + 1 < width; ++j) sums[i] += prices[j] * rows[i * width + j];
  return sums;
}

struct MadeDevice {
  std::string name;
  std::vector<double> latency_ms;
};

inline space::DesignTable table_of(const space::Population& designs,
                                   std::vector<MadeDevice> devices) {
  space::DesignTable table{.name = "made.csv", .space = &cells(), .designs = designs};
  for (auto& device : devices) {
    table.columns.push_back(std::move(device.name));
    table.values.push_back(std::move(device.latency_ms));
  }
  return table;
}

/// Different designs at random.
inline space::Population some_cells(std::size_t count, std::uint64_t seed) {
  return *space::sample_designs(cells(), {.seed = seed, .count = count});
}

/// A proxy of which only some designs were measured, so that it is known as a sum.
inline LinearProxy proxy_with(std::span<const double> prices) {
  const auto designs = some_cells(1000, 99);
  return *LinearProxy::fit(table_of(designs, {{"proxy", add_up(designs, "one-hot", prices, 1.0)}}),
                           0);
}

}  // namespace fleetfit::transfer
