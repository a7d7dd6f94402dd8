// How fast searches are, and how good bisection is with few measurements.
//   search_bench                  speed, on one core
//   search_bench bisection        every device of the public NAS-Bench-201 tables from some
//   proxies,
//                                 ten budgets each, ten measurements
//   search_bench fleet [DEVICES]  a simulated fleet, fitted and searched on all cores
// Tables come from $FLEETFIT_SHARED_DATA, else ../shared/data.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
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
#include "fleetfit/core/thread_pool.h"
#include "fleetfit/predict/network_predictor.h"
#include "fleetfit/search/bisection.h"
#include "fleetfit/search/search.h"
#include "fleetfit/space/design_index.h"
#include "fleetfit/space/table.h"

namespace fleetfit::bench {
namespace {

using search::Candidate;
using search::Problem;

constexpr std::size_t kMeasurements = 10;
constexpr int kRounds = 10;

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of some rounds: the machine is not ours alone.
double fastest(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) best = std::min(best, seconds(work));
  return best;
}

std::filesystem::path data_folder() {
  const char* named = std::getenv("FLEETFIT_SHARED_DATA");
  return named != nullptr ? named : "../shared/data";
}

/// A latency that is a sum over genes.
class AdditiveSource final : public space::Source {
 public:
  explicit AdditiveSource(predict::AdditiveTable table) : table_(std::move(table)) {}

  Status evaluate(space::DesignBatch designs, std::span<double> out) const override {
    table_.price(designs.choices(), out);
    return {};
  }

 private:
  predict::AdditiveTable table_;
};

/// What a choice of a gene adds, at random.
predict::AdditiveTable random_table(const space::Space& space, std::uint64_t seed) {
  core::Random random(seed);
  std::vector<std::vector<double>> ms;
  for (const auto& gene : space.genes()) {
    ms.emplace_back();
    for (std::size_t i = 0; i < gene.choices.size(); ++i) ms.back().push_back(random.uniform());
  }
  return predict::AdditiveTable::build(1, ms).value();
}

/// NAS-Bench-201 with its accuracies and the latencies of all devices.
struct Tables {
  const space::Space* space = nullptr;
  space::DesignTable latency;
  std::vector<double> accuracy;  // in the order of latency's rows
  std::unique_ptr<const space::Source> accuracy_source;
};

Result<Tables> read_tables() {
  FLEETFIT_ASSIGN(const auto space, space::find_space("nasbench201"));
  FLEETFIT_ASSIGN(auto latency,
                  space::read_design_table(data_folder() / "latency/nasbench201.csv", *space));
  FLEETFIT_ASSIGN(
      const auto accuracy,
      space::read_design_table(data_folder() / "accuracy/nasbench201.csv", *space,
                               {.columns = {"c10_test_200ep"}, .cells = space::CellRule::any}));
  Tables tables{.space = space,
                .latency = std::move(latency),
                .accuracy = {},
                .accuracy_source = space::table_source(accuracy, 0)};
  tables.accuracy.resize(tables.latency.designs.size());
  FLEETFIT_TRY(tables.accuracy_source->evaluate(tables.latency.designs, tables.accuracy));
  return tables;
}

Problem problem_of(const Tables& tables, const space::Source& latency, double limit) {
  return {.space = tables.space,
          .accuracy = tables.accuracy_source.get(),
          .costs = {{.name = "latency_ms", .source = &latency, .limit = limit}}};
}

void time_pricing(const space::Space& space) {
  constexpr std::size_t kDesigns = 20'000;
  const auto table = random_table(space, 1);
  space::Population designs(space.genes().size(), kDesigns);
  core::Random random(2);
  for (std::size_t i = 0; i < kDesigns; ++i) space.sample(random, designs[i]);
  std::vector<double> out(kDesigns);
  const double s = fastest([&] { table.price(designs.batch().choices(), out); });
  fmt::print("pricing by a linear proxy, {:<12} {:>6.1f} million designs/s\n", space.name(),
             kDesigns / s / 1e6);
}

void time_evolution(const space::Space& space, core::ThreadPool& pool) {
  const AdditiveSource latency(random_table(space, 1));
  const AdditiveSource accuracy(random_table(space, 2));
  const double middle = 1 + 0.4 * static_cast<double>(space.genes().size());
  const Problem problem{.space = &space,
                        .accuracy = &accuracy,
                        .costs = {{.name = "x", .source = &latency, .limit = middle}}};
  std::uint64_t evaluations = 0;
  const double s = fastest([&] {
    const auto strategy = search::make_evolution(space, core::Random(1)).value();
    evaluations = search::run_search(problem, *strategy, pool)->evaluations;
  });
  const double nsga2 = fastest([&] {
    const auto strategy = search::make_nsga2(space, core::Random(1)).value();
    evaluations = search::run_search(problem, *strategy, pool)->evaluations;
  });
  fmt::print("1000 x 50 in {:<12} evolution {:.4f} s, nsga2 {:.4f} s\n", space.name(), s, nsga2);
}

/// What it costs to know that a design was met before, against asking a table again.
void time_memory_of_designs(const Tables& tables, const space::Source& latency) {
  const space::DesignBatch designs = tables.latency.designs;
  const double noting = fastest([&] {
    space::DesignIndex index(*tables.space);
    for (std::size_t i = 0; i < designs.size(); ++i) index.add(designs[i]);
  });
  std::vector<double> out(designs.size());
  const double asking = fastest([&] { (void)latency.evaluate(designs, out); });
  const auto count = static_cast<double>(designs.size());
  fmt::print("noting a design {:.0f} ns, asking a table for it {:.0f} ns\n", noting / count * 1e9,
             asking / count * 1e9);
}

int time_all() {
  core::ThreadPool pool(1);
  for (const auto& space : space::spaces()) time_pricing(*space);
  for (const auto& space : space::spaces()) time_evolution(*space, pool);
  const auto tables = read_tables();
  if (!tables) {
    fmt::print("without public tables: {}\n", tables.error().message);
    return 0;
  }
  const auto column = tables->latency.find_column("pixel3").value();
  const auto latency = space::table_source(tables->latency, column);
  const auto problem = problem_of(*tables, *latency, 20);
  const double evolution = fastest([&] {
    const auto strategy = search::make_evolution(*tables->space, core::Random(1)).value();
    (void)search::run_search(problem, *strategy, pool);
  });
  const double all = fastest([&] {
    const auto strategy = search::make_exhaustive(*tables->space).value();
    (void)search::run_search(problem, *strategy, pool);
  });
  fmt::print("tables of nasbench201: evolution {:.4f} s, all designs {:.4f} s\n", evolution, all);
  time_memory_of_designs(*tables, *latency);
  return 0;
}

/// The most accurate design within the limit.
double best_accuracy(const Tables& tables, std::span<const double> latency, double limit) {
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < latency.size(); ++i)
    if (latency[i] <= limit) best = std::max(best, tables.accuracy[i]);
  return best;
}

struct Regrets {
  std::vector<double> points = {};
  std::size_t none = 0;

  void print(std::string_view name) const {
    auto sorted = points;
    std::ranges::sort(sorted);
    const auto within = std::ranges::count_if(sorted, [](double r) { return r < 0.5; });
    fmt::print("{:<16} within 0.5 points {:>5.1f} %, mean {:.3f}, worst {:.2f}, nothing found {}\n",
               name,
               100.0 * static_cast<double>(within) / static_cast<double>(sorted.size() + none),
               core::mean(sorted).value_or(0), sorted.empty() ? 0 : sorted.back(), none);
  }
};

void bisect_from(const Tables& tables, const std::string& proxy_name, core::ThreadPool& pool) {
  const auto proxy = tables.latency.find_column(proxy_name).value();
  const auto proxy_source = space::table_source(tables.latency, proxy);
  auto solutions =
      search::ProxySolutions::prepare(problem_of(tables, *proxy_source, 1), pool).value();
  Regrets all;
  for (std::size_t device = 0; device < tables.latency.columns.size(); ++device) {
    if (device == proxy) continue;
    const auto& latency = tables.latency.values[device];
    const auto source = space::table_source(tables.latency, device);
    Regrets regrets;
    for (const double share : {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}) {
      const double limit = core::quantile(latency, share).value();
      const std::vector<search::DeviceCost> cost = {{source.get(), limit}};
      const auto result =
          search::bisect(solutions, cost, {.max_measurements = kMeasurements}).value();
      if (!result.best) {
        ++regrets.none;
        continue;
      }
      regrets.points.push_back(best_accuracy(tables, latency, limit) - result.best->accuracy);
    }
    const auto srcc = core::spearman(latency, tables.latency.values[proxy]).value_or(0);
    regrets.print(fmt::format("{} {:.2f}", tables.latency.columns[device], srcc));
    all.points.insert(all.points.end(), regrets.points.begin(), regrets.points.end());
    all.none += regrets.none;
  }
  all.print("all from " + proxy_name);
}

int try_bisection() {
  const auto tables = read_tables();
  if (!tables) {
    fmt::print(stderr, "search_bench: {}\n", tables.error().message);
    return 1;
  }
  core::ThreadPool pool(1);
  const double s = seconds([&] {
    for (const char* proxy : {"pixel3", "gold_6226", "titan_rtx_32"})
      bisect_from(*tables, proxy, pool);
  });
  fmt::print("{:.1f} s\n", s);
  return 0;
}

/// A device that does not exist: a real one whose every operator costs more or less.
class SimulatedDevice {
 public:
  SimulatedDevice(const std::vector<std::vector<double>>& real, double base, core::Random random)
      : table_(predict::AdditiveTable::build(base, perturbed(real, random)).value()) {}

  const AdditiveSource& source() const { return table_; }

 private:
  static std::vector<std::vector<double>> perturbed(std::vector<std::vector<double>> ms,
                                                    core::Random& random) {
    constexpr double kSpread = 0.25;
    const double factor = std::exp(random.normal());
    for (auto& gene : ms)
      for (double& cost : gene) cost *= factor * std::exp(kSpread * random.normal());
    return ms;
  }

  AdditiveSource table_;
};

/// How one device of a fleet gets its network: by measuring a few designs on it.
using FitDevice =
    std::function<std::optional<Candidate>(const space::Source& device, double limit)>;

/// Makes one for a thread.
using MakeFit = std::function<FitDevice()>;

/// Costs of operators on the real devices, by least squares.
std::vector<std::vector<std::vector<double>>> operator_costs(const Tables& tables) {
  std::vector<std::vector<std::vector<double>>> devices;
  const auto& designs = tables.latency.designs;
  for (const auto& latency : tables.latency.values) {
    // Each choice's mean latency over all designs: exact for a sum, as the table is balanced.
    std::vector<std::vector<double>> ms;
    for (std::size_t gene = 0; gene < designs.genes(); ++gene) {
      const std::size_t choices = tables.space->genes()[gene].choices.size();
      std::vector<double> sums(choices, 0);
      for (std::size_t i = 0; i < latency.size(); ++i) sums[designs[i][gene]] += latency[i];
      const double cheapest = *std::ranges::min_element(sums);
      for (double& sum : sums)
        sum = (sum - cheapest) * static_cast<double>(choices) / static_cast<double>(latency.size());
      ms.push_back(std::move(sums));
    }
    devices.push_back(std::move(ms));
  }
  return devices;
}

std::vector<double> latencies(const Tables& tables, const space::Source& source) {
  std::vector<double> out(tables.latency.designs.size());
  (void)source.evaluate(tables.latency.designs, out);
  return out;
}

struct FleetResult {
  Regrets regrets;
  double elapsed_s = 0;
};

FleetResult fit_fleet(const Tables& tables, std::size_t devices, const MakeFit& make_fit,
                      core::ThreadPool& pool) {
  constexpr std::size_t kChunk = 50;
  constexpr double kBase = 1;
  const auto real = operator_costs(tables);
  const core::Random random(1);
  std::vector<double> regret(devices, std::numeric_limits<double>::quiet_NaN());
  FleetResult result;
  result.elapsed_s = seconds([&] {
    pool.parallel_chunks(devices, kChunk, [&](std::size_t begin, std::size_t end) {
      const auto fit = make_fit();
      for (std::size_t i = begin; i < end; ++i) {
        auto stream = random.split(i);
        const auto& model = real[stream.below(real.size())];
        const SimulatedDevice device(model, kBase, stream);
        const auto latency = latencies(tables, device.source());
        const double limit = core::quantile(latency, stream.uniform(0.1, 0.9)).value();
        const auto found = fit(device.source(), limit);
        if (found) regret[i] = best_accuracy(tables, latency, limit) - found->accuracy;
      }
    });
  });
  for (const double points : regret) {
    if (std::isnan(points)) {
      ++result.regrets.none;
    } else {
      result.regrets.points.push_back(points);
    }
  }
  return result;
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

/// Bisection by way of a real device whose table is known; all devices of a thread share what was
/// solved for it.
MakeFit by_bisection(const Tables& tables, const space::Source& proxy) {
  return [&]() -> FitDevice {
    auto pool = std::make_shared<core::ThreadPool>(1);
    auto solutions = std::make_shared<search::ProxySolutions>(
        search::ProxySolutions::prepare(problem_of(tables, proxy, 1), *pool).value());
    return [pool, solutions](const space::Source& device, double limit) {
      const std::vector<search::DeviceCost> cost = {{&device, limit}};
      return search::bisect(*solutions, cost, {.max_measurements = kMeasurements})->best;
    };
  };
}

int try_fleet(std::size_t most) {
  const auto tables = read_tables();
  if (!tables) {
    fmt::print(stderr, "search_bench: {}\n", tables.error().message);
    return 1;
  }
  const auto column = tables->latency.find_column("pixel3").value();
  const auto proxy = space::table_source(tables->latency, column);
  core::ThreadPool pool(core::ThreadPool::available_cpus());
  for (std::size_t devices = 100; devices <= most; devices *= 10) {
    const auto result = fit_fleet(*tables, devices, by_bisection(*tables, *proxy), pool);
    fmt::print(
        "{} devices, {} measurements each: {:.1f} s on {} cores ({:.2f} ms each), peak memory "
        "{:.0f} MB\n",
        devices, kMeasurements, result.elapsed_s, pool.workers(),
        1e3 * result.elapsed_s / static_cast<double>(devices), peak_memory_mb());
    result.regrets.print("  regret");
  }
  return 0;
}

int run(std::span<const std::string> arguments) {
  if (arguments.empty()) return time_all();
  if (arguments[0] == "bisection") return try_bisection();
  if (arguments[0] == "fleet")
    return try_fleet(arguments.size() > 1 ? std::stoul(arguments[1]) : 10'000);
  fmt::print(stderr, "usage: search_bench [bisection | fleet [DEVICES]]\n");
  return 2;
}

}  // namespace
}  // namespace fleetfit::bench

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return fleetfit::bench::run(arguments);
}
