// The best design for a device by a few measurements on it.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "app/pareto_page.h"
#include "app/search_problem.h"
#include "fleetfit/app/searching.h"
#include "fleetfit/core/file.h"

namespace fleetfit::app {
namespace {

// "About 20 seconds or more": what One Proxy reckons for a measurement on a phone.
constexpr double kUsualSecondsPerMeasurement = 20;

struct CostPair {
  Quantity quantity;
  const CostRequest* proxy;
  const CostRequest* target;
};

std::vector<CostPair> costs_of(const BisectRequest& request) {
  std::vector<CostPair> costs = {{Quantity::latency_ms, &request.proxy, &request.target}};
  if (!request.proxy_energy.source.empty() || !request.target_energy.source.empty())
    costs.push_back({Quantity::energy_mj, &request.proxy_energy, &request.target_energy});
  return costs;
}

Status check_costs(const std::vector<CostPair>& costs) {
  for (const auto& [quantity, proxy, target] : costs) {
    const bool complete = !proxy->source.empty() && !target->source.empty() && target->budget;
    if (!complete) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: bisection needs a source on the proxy, one on the target and a "
                              "budget",
                              to_string(quantity)));
    }
  }
  return {};
}

class Bisecting {
 public:
  Bisecting(Workplace& workplace, const BisectRequest& request, core::Progress& progress,
            std::stop_token stop)
      : workplace_(workplace), request_(request), progress_(progress), stop_(std::move(stop)) {}

  Result<BisectReport> run() {
    const auto costs = costs_of(request_);
    if (auto ok = check_costs(costs); !ok) return tl::unexpected(std::move(ok.error()));
    ProblemRequest problem{
        .space = request_.space, .accuracy = request_.accuracy, .sources = request_.sources};
    for (const auto& cost : costs) problem.costs.emplace_back(cost.quantity, cost.proxy);
    auto proxy = open_problem({workplace_, progress_, stop_}, problem);
    if (!proxy) return tl::unexpected(std::move(proxy.error()));
    report_.space = proxy->problem.space;
    report_.sources = proxy->reports();
    for (const auto& cost : costs)
      if (auto ok = open_target(cost, *proxy); !ok) return tl::unexpected(std::move(ok.error()));
    if (auto ok = bisect(*proxy); !ok) return tl::unexpected(std::move(ok.error()));
    count_costs();
    return std::move(report_);
  }

 private:
  Status open_target(const CostPair& cost, OpenedProblem& proxy) {
    auto source = open_source({*report_.space, workplace_, progress_, stop_}, cost.target->source,
                              cost.quantity, request_.sources);
    if (!source) return tl::unexpected(std::move(source.error()));
    // A table can be "measured" only where it has numbers.
    if (auto ok = keep_known(*report_.space, *source, proxy.listed); !ok) return ok;
    report_.sources.push_back(
        report_of(fmt::format("target_{}", to_string(cost.quantity)), *source));
    report_.costs.emplace_back(to_string(cost.quantity));
    report_.budgets.push_back(*cost.target->budget);
    device_.push_back({.source = source->source.get(), .limit = *cost.target->budget});
    targets_.push_back(*std::move(source));
    return {};
  }

  Status bisect(const OpenedProblem& proxy) {
    core::ThreadPool pool(request_.sources.threads);
    const auto start = workplace_.clock.now();
    const auto listed = proxy.listed ? proxy.listed->batch() : space::DesignBatch();
    auto solutions = search::ProxySolutions::prepare(
        proxy.problem, pool, {.evolution = request_.evolution, .seed = request_.sources.seed},
        listed);
    if (!solutions) return tl::unexpected(std::move(solutions.error()));
    auto result = search::bisect(*solutions, device_,
                                 {.max_measurements = request_.max_measurements, .stop = stop_});
    if (!result) return tl::unexpected(std::move(result.error()));
    report_.result = *std::move(result);
    const std::chrono::duration<double> took = workplace_.clock.now() - start;
    report_.elapsed_s = took.count();
    return {};
  }

  void count_costs() {
    std::size_t made = 0;
    for (const auto& target : targets_) {
      if (!target.spent) continue;
      const Spent spent = target.spent();
      made += spent.measurements;
      report_.machine_s += spent.machine_s;
      report_.machine_s_is_measured = true;
    }
    report_.elapsed_s -= report_.machine_s;
    const std::size_t measurements = report_.result.measurements;
    // Designs that the store knew were measured once, too.
    const double each =
        made > 0 ? report_.machine_s / static_cast<double>(made) : kUsualSecondsPerMeasurement;
    if (!report_.machine_s_is_measured)
      report_.machine_s = static_cast<double>(measurements) * kUsualSecondsPerMeasurement;
    report_.devices = request_.devices;
    report_.predictor_measurements = request_.predictor_measurements;
    report_.fleet = search::fleet_cost({.devices = request_.devices,
                                        .measurements = measurements,
                                        .seconds_per_measurement = each,
                                        .search_s = report_.elapsed_s,
                                        .predictor_measurements = request_.predictor_measurements});
  }

  Workplace& workplace_;
  const BisectRequest& request_;
  core::Progress& progress_;
  std::stop_token stop_;
  std::vector<OpenedSource> targets_;
  std::vector<search::DeviceCost> device_;
  BisectReport report_;
};

}  // namespace

bool measures(const BisectRequest& request) {
  return measures(request.proxy.source) || measures(request.target.source) ||
         measures(request.proxy_energy.source) || measures(request.target_energy.source);
}

Result<BisectReport> bisect_on_device(Workplace& workplace, const BisectRequest& request,
                                      core::Progress& progress, const std::stop_token& stop) {
  auto report = Bisecting(workplace, request, progress, stop).run();
  if (!report || request.plot.empty()) return report;
  if (auto ok = core::write_file(request.plot, bisection_page(*report)); !ok)
    return tl::unexpected(std::move(ok.error()));
  return report;
}

}  // namespace fleetfit::app
