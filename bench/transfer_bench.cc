// How fast transfer is, on one core.
//   transfer_bench
// Tables come from $FLEETFIT_SHARED_DATA, else ../shared/data.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/adaproxy.h"
#include "fleetfit/transfer/linear_proxy.h"
#include "fleetfit/transfer/monotonicity.h"

namespace fleetfit::bench {
namespace {

constexpr int kRounds = 7;
constexpr std::size_t kPriced = 1'000'000;

/// Of some rounds: the machine is not ours alone.
double fastest_s(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

std::filesystem::path data_folder() {
  const char* named = std::getenv("FLEETFIT_SHARED_DATA");
  return named != nullptr ? named : "../shared/data";
}

void print(std::string_view what, double value, std::string_view unit, std::string_view goal) {
  fmt::print("{:<68} {:>9.2f} {:<12} {}\n", what, value, unit, goal);
}

/// Against one call of core::spearman for each pair.
void bench_matrix(const space::DesignTable& table) {
  const double matrix_s =
      fastest_s([&] { (void)transfer::correlation_matrix({table.columns, table.values}); });
  const double pair_s = fastest_s([&] { (void)core::spearman(table.values[0], table.values[1]); });
  const auto devices = static_cast<double>(table.columns.size());
  print(
      fmt::format("matrix of {} devices x {} designs", table.columns.size(), table.designs.size()),
      1e3 * matrix_s, "ms", "goal: below 300");
  print("  pair by pair it would take", pair_s * devices * (devices - 1) / 2 / matrix_s,
        "times as long", "");
}

struct Samples {
  space::Population designs;
  std::vector<double> latency_ms;
};

Samples draw(const space::DesignTable& table, std::size_t column, std::size_t count) {
  core::Random random(1);
  Samples samples{space::Population(table.designs.genes()), {}};
  for (const auto row : random.sample(table.designs.size(), count)) {
    samples.designs.add(table.designs[row]);
    samples.latency_ms.push_back(table.values[column][row]);
  }
  return samples;
}

/// Everything that an adaptation does: all sets of directions, each with the path of 40 penalties
/// on all but the samples that are set aside, rounds against outliers and the last fit.
void bench_adapt(const space::DesignTable& table, const std::string& proxy,
                 const std::string& target, std::size_t samples) {
  const auto known = transfer::LinearProxy::fit(table, *table.find_column(proxy));
  if (!known) return fmt::print("{}\n", known.error().message);
  const auto drawn = draw(table, *table.find_column(target), samples + 20);
  const double adapt_s = fastest_s([&] {
    (void)transfer::adapt(*known, {.designs = drawn.designs, .latency_ms = drawn.latency_ms});
  });
  print(fmt::format("AdaProxy on {}, {} -> {}, {} + 20 samples", table.space->name(), proxy, target,
                    samples),
        1e3 * adapt_s, "ms", "goal: below 20 for a path");
}

void bench_pricing(const space::DesignTable& table) {
  const auto proxy = transfer::LinearProxy::fit(table, 0);
  if (!proxy) return fmt::print("{}\n", proxy.error().message);
  core::Random random(3);
  space::Population designs(table.designs.genes(), kPriced);
  for (std::size_t i = 0; i < kPriced; ++i) table.space->sample(random, designs[i]);
  std::vector<double> out(kPriced);
  const double price_s = fastest_s([&] { proxy->price(designs, out); });
  print(fmt::format("designs of {} priced by a linear proxy", table.space->name()),
        static_cast<double>(kPriced) / price_s / 1e6, "million / s", "goal: above 5");
}

Result<space::DesignTable> read(const char* file, const char* space) {
  FLEETFIT_ASSIGN(const auto found, space::find_space(space));
  return space::read_design_table(data_folder() / "latency" / file, *found);
}

int run() {
  const auto cells = read("nasbench201.csv", "nasbench201");
  const auto blocks = read("fbnet.csv", "fbnet");
  const auto elastic = read("ofa.csv", "ofa-mbv3");
  for (const auto* table : {&cells, &blocks, &elastic}) {
    if (*table) continue;
    fmt::print("{}\n", table->error().message);
    return 1;
  }
  bench_matrix(*cells);
  bench_adapt(*cells, "pixel3", "gold_6226", 60);
  bench_adapt(*blocks, "fpga", "titanxp_32", 80);
  bench_adapt(*elastic, "v100_64", "titan_rtx_1", 80);
  for (const auto* table : {&cells, &blocks, &elastic}) bench_pricing(**table);
  return 0;
}

}  // namespace
}  // namespace fleetfit::bench

int main() { return fleetfit::bench::run(); }
