// How long few-shot transfer takes: all that is learned from the references, the choice of samples,
// the fit, and the prediction of every design of a table.
//
//   fewshot_bench TABLE SPACE TARGET SAMPLES REFERENCE...

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/statistics.h"
#include "fleetfit/space/table.h"
#include "fleetfit/transfer/few_shot.h"

namespace {

using namespace fleetfit;  // NOLINT(google-build-using-namespace): a program of its own
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Milliseconds of one round.
struct Times {
  double learn = 0;
  double choose = 0;
  double fit = 0;
  double predict = 0;
  double srcc = 0;

  double all() const { return learn + choose + fit + predict; }
};

Result<Times> run_round(const space::DesignTable& table, std::size_t samples, std::uint64_t seed) {
  Times times;
  const std::size_t target = table.columns.size() - 1;
  std::vector<std::size_t> references(target);
  for (std::size_t i = 0; i < target; ++i) references[i] = i;

  auto start = Clock::now();
  FLEETFIT_ASSIGN(const auto known,
                  transfer::KnownDevices::learn(table, references, {.seed = seed}));
  times.learn = ms_since(start);

  start = Clock::now();
  const auto rows = known.choose(table.designs, samples);
  times.choose = ms_since(start);

  space::Population designs(table.designs.genes());
  std::vector<double> latencies;
  for (const auto row : rows) {
    designs.add(table.designs[row]);
    latencies.push_back(table.values[target][row]);
  }
  start = Clock::now();
  FLEETFIT_ASSIGN(const auto model, known.fit(designs, latencies));
  times.fit = ms_since(start);

  std::vector<double> predicted(table.designs.size());
  std::vector<transfer::PredictedLatency> ranges(table.designs.size());
  start = Clock::now();
  model->predict(table.designs, ranges);
  times.predict = ms_since(start);
  std::ranges::transform(ranges, predicted.begin(), &transfer::PredictedLatency::ms);
  times.srcc = core::spearman(predicted, table.values[target]).value_or(std::nan(""));
  return times;
}

Status run(std::span<const std::string> arguments) {
  FLEETFIT_ASSIGN(const auto space, space::find_space(arguments[1]));
  std::vector<std::string> columns(arguments.begin() + 4, arguments.end());
  columns.push_back(arguments[2]);
  FLEETFIT_ASSIGN(const auto table,
                  space::read_design_table(arguments[0], *space, {.columns = columns}));
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    FLEETFIT_ASSIGN(const auto times,
                    run_round(table, std::stoul(arguments[3]), static_cast<std::uint64_t>(round)));
    fmt::print(
        "learn {:.1f} ms, choose {:.1f} ms, fit {:.1f} ms, predict {} designs {:.1f} ms: {:.1f} ms "
        "(rank correlation {:.4f})\n",
        times.learn, times.choose, times.fit, table.designs.size(), times.predict, times.all(),
        times.srcc);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 5) {
    fmt::print(stderr, "usage: fewshot_bench TABLE SPACE TARGET SAMPLES REFERENCE...\n");
    return 2;
  }
  if (auto ok = run(arguments); !ok) {
    fmt::print(stderr, "fewshot_bench: {}\n", ok.error().message);
    return 1;
  }
  return 0;
}
