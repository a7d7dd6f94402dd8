// The best design for a device by a few measurements on it.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "app/search/search_problem.h"
#include "fleetfit/app/searching.h"
#include "fleetfit/core/file.h"
#include "fleetfit/search/scaling.h"

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
    FLEETFIT_TRY(check_costs(costs));
    ProblemRequest problem{
        .space = request_.space, .accuracy = request_.accuracy, .sources = request_.sources};
    for (const auto& cost : costs) problem.costs.emplace_back(cost.quantity, cost.proxy);
    FLEETFIT_ASSIGN(auto proxy, open_problem({workplace_, progress_, stop_}, problem));
    report_.space = proxy.problem.space;
    report_.sources = proxy.reports();
    for (const auto& cost : costs) FLEETFIT_TRY(open_target(cost, proxy));
    FLEETFIT_TRY(bisect(proxy));
    return std::move(report_);
  }

 private:
  Status open_target(const CostPair& cost, OpenedProblem& proxy) {
    FLEETFIT_ASSIGN(auto source, open_source({*report_.space, workplace_, progress_, stop_},
                                             cost.target->source, cost.quantity, request_.sources));
    // A table can be "measured" only where it has numbers.
    FLEETFIT_TRY(keep_known(*report_.space, source, proxy.listed));
    report_.sources.push_back(
        report_of(fmt::format("target_{}", to_string(cost.quantity)), source));
    report_.costs.emplace_back(to_string(cost.quantity));
    report_.budgets.push_back(*cost.target->budget);
    device_.push_back({.source = source.source.get(), .limit = *cost.target->budget});
    targets_.push_back(std::move(source));
    return {};
  }

  Status bisect(const OpenedProblem& proxy) {
    core::ThreadPool pool(request_.sources.threads);
    const auto start = workplace_.clock.now();
    const auto listed = proxy.listed ? proxy.listed->batch() : space::DesignBatch();
    FLEETFIT_ASSIGN(auto solutions,
                    search::ProxySolutions::prepare(
                        proxy.problem, pool,
                        {.evolution = request_.evolution, .seed = request_.sources.seed}, listed));
    FLEETFIT_ASSIGN(report_.result,
                    search::bisect(solutions, device_,
                                   {.max_measurements = request_.max_measurements, .stop = stop_}));
    const std::chrono::duration<double> took = workplace_.clock.now() - start;
    report_.elapsed_s = took.count();
    count_costs();
    if (request_.compare_scaling) {
      FLEETFIT_TRY(scale_depth(solutions, proxy, pool));
    }
    if (!request_.compare_predictor.empty()) return search_own_predictor(proxy, pool);
    return {};
  }

  /// The most accurate of these designs that keeps the budgets on the device.
  Result<std::optional<search::Candidate>> best_measured(const OpenedProblem& proxy,
                                                         space::DesignBatch designs,
                                                         core::ThreadPool& pool) {
    auto problem = proxy.problem;
    for (std::size_t c = 0; c < device_.size(); ++c) {
      problem.costs[c].source = device_[c].source;
      problem.costs[c].limit = device_[c].limit;
    }
    space::Population listed(designs.genes());
    for (std::size_t i = 0; i < designs.size(); ++i) listed.add(designs[i]);
    const auto strategy = search::make_listed(std::move(listed));
    auto found = search::run_search(problem, *strategy, pool, {.stop = stop_});
    if (!found && found.error().code == ErrorCode::not_found) return std::nullopt;
    FLEETFIT_TRY(found);
    return std::move(found->best);
  }

  /// The middle design of the proxy, with blocks more and less.
  Status scale_depth(search::ProxySolutions& solutions, const OpenedProblem& proxy,
                     core::ThreadPool& pool) {
    const double each = 0.5 / static_cast<double>(device_.size());
    FLEETFIT_ASSIGN(const auto middle, solutions.solve(std::vector<double>(device_.size(), each)));
    Baseline baseline{.name = "scaling"};
    const auto scaled = search::scaled_designs(*report_.space, solutions.designs()[middle]);
    if (scaled) {
      FLEETFIT_ASSIGN(baseline.best, best_measured(proxy, *scaled, pool));
      baseline.measurements = scaled->size();
      if (!baseline.best) baseline.remark = "no scaled design keeps the budgets";
    } else {
      baseline.remark = scaled.error().message;
    }
    report_.baselines.push_back(std::move(baseline));
    return {};
  }

  /// What a predictor made for the device finds, as the device has it.
  Status search_own_predictor(const OpenedProblem& proxy, core::ThreadPool& pool) {
    FLEETFIT_ASSIGN(const auto own, open_source({*report_.space, workplace_, progress_, stop_},
                                                request_.compare_predictor, Quantity::latency_ms,
                                                request_.sources));
    auto problem = proxy.problem;
    problem.costs.resize(1);
    problem.costs[0].source = own.source.get();
    problem.costs[0].limit = device_[0].limit;
    Result<std::unique_ptr<search::Strategy>> strategy =
        proxy.listed ? search::make_listed(*proxy.listed)
                     : search::make_evolution(*report_.space, core::Random(request_.sources.seed),
                                              request_.evolution);
    FLEETFIT_TRY(strategy);
    FLEETFIT_ASSIGN(const auto found,
                    search::run_search(problem, **strategy, pool, {.stop = stop_}));
    Baseline baseline{.name = "own predictor"};
    if (found.best) {
      const auto& design = found.best->design;
      FLEETFIT_ASSIGN(baseline.best, best_measured(proxy, {design, design.size()}, pool));
      baseline.measurements = 1;
    }
    if (!baseline.best) baseline.remark = "the design that it promises does not keep the budgets";
    report_.sources.push_back(report_of("own_latency_ms", own));
    report_.baselines.push_back(std::move(baseline));
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
  FLEETFIT_TRY(core::write_file(request.plot, bisection_page(*report)));
  return report;
}

}  // namespace fleetfit::app
