#include "fleetfit/app/searching.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "app/search/search_problem.h"
#include "fleetfit/core/file.h"

namespace fleetfit::app {
namespace {

using search::Candidate;

// A random design of a large space is in a table with fewer designs than this share next to never.
constexpr double kWorthGuessing = 0.01;
constexpr std::size_t kAnnealingChains = 50;

/// Weights for which evolution is run to get a whole Pareto set, dense where costs count little:
/// the last points of accuracy are the dearest.
constexpr std::array kWeights = {0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0};

std::vector<std::pair<Quantity, const CostRequest*>> costs_of(const SearchRequest& request) {
  return {{Quantity::latency_ms, &request.latency},
          {Quantity::energy_mj, &request.energy},
          {Quantity::memory_mb, &request.memory}};
}

Status check_goal(const SearchRequest& request) {
  bool has_goal = request.pareto;
  for (const auto& [quantity, cost] : costs_of(request)) {
    if (cost->source.empty() && (cost->budget || cost->weight > 0)) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: a budget or weight needs a source", to_string(quantity)));
    }
    has_goal = has_goal || cost->budget || cost->weight > 0;
  }
  if (has_goal) return {};
  return fail(ErrorCode::invalid_input,
              "a search needs a goal: a budget, a weight, or the Pareto set");
}

/// The worst of what was seen, from which the hypervolume is measured.
class Worst {
 public:
  explicit Worst(std::size_t objectives)
      : values_(objectives, -std::numeric_limits<double>::infinity()) {}

  void see(const search::Outcome& outcome) {
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) {
      if (outcome.scores[i].violation > 0) continue;
      for (std::size_t o = 0; o < values_.size(); ++o)
        values_[o] = std::max(values_[o], outcome.objectives[i][o]);
    }
  }

  const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

std::optional<Hypervolume> hypervolume_of(const std::vector<Candidate>& pareto,
                                          const std::vector<double>& worst) {
  std::vector<double> rows;
  for (const auto& candidate : pareto) {
    rows.insert(rows.end(), candidate.costs.begin(), candidate.costs.end());
    rows.push_back(-candidate.accuracy);
  }
  if (pareto.empty()) return std::nullopt;
  const auto value = search::hypervolume({rows, worst.size()}, worst);
  if (!value) return std::nullopt;
  return Hypervolume{
      .value = *value, .costs = {worst.begin(), worst.end() - 1}, .accuracy = -worst.back()};
}

/// One search after everything was opened.
class Searching {
 public:
  Searching(const SearchRequest& request, const OpenedProblem& opened, core::ThreadPool& pool,
            core::ProgressTask& task, const std::stop_token& stop)
      : request_(request),
        opened_(opened),
        problem_(opened.problem),
        pool_(pool),
        task_(task),
        stop_(stop),
        random_(request.sources.seed),
        worst_(problem_.objectives()) {}

  /// The strategy that was asked for, or what suits best.
  std::string strategy() const {
    if (!request_.strategy.empty()) return request_.strategy;
    if (opened_.listed && share_known() < kWorthGuessing) return "exhaustive";
    return request_.pareto ? "nsga2" : "evolution";
  }

  Result<search::Found> run() {
    const auto name = strategy();
    if (problem_.is_weighted()) {
      FLEETFIT_ASSIGN(scales_, measure_scales());
    }
    if (request_.pareto && name == "evolution") return sweep_weights();
    FLEETFIT_ASSIGN(auto made, make(name));
    auto found = run(problem_, *made);
    if (!found) return hinted(std::move(found.error()));
    return found;
  }

  const std::vector<double>& worst() const { return worst_.values(); }

 private:
  double share_known() const {
    return static_cast<double>(opened_.listed->size()) / problem_.space->size().approximate();
  }

  Result<search::Scales> measure_scales() {
    const auto listed = opened_.listed ? opened_.listed->batch() : space::DesignBatch();
    return search::measure_scales(problem_, pool_, {.seed = request_.sources.seed}, listed);
  }

  Result<std::unique_ptr<search::Strategy>> make(const std::string& name) {
    const auto& space = *problem_.space;
    const auto& options = request_.evolution;
    const std::size_t designs = options.population * options.generations;
    if (name == "evolution") return search::make_evolution(space, random_, options);
    if (name == "nsga2") return search::make_nsga2(space, random_, options);
    if (name == "annealing") {
      return search::make_annealing(
          space, random_,
          {.chains = kAnnealingChains,
           .steps = std::max<std::size_t>(designs / kAnnealingChains, 1)});
    }
    if (name == "random") {
      return search::make_random(space, random_, {.designs = designs, .batch = options.population});
    }
    if (name == "exhaustive") return make_exhaustive();
    return fail(ErrorCode::invalid_input,
                fmt::format("there is no strategy '{}'; there are evolution, nsga2, annealing, "
                            "random and exhaustive",
                            name));
  }

  /// Where sources know but some designs, these are all that can be tried.
  Result<std::unique_ptr<search::Strategy>> make_exhaustive() {
    if (opened_.listed) return search::make_listed(*opened_.listed);
    return search::make_exhaustive(*problem_.space);
  }

  Result<search::Found> run(const search::Problem& problem, search::Strategy& strategy) {
    const auto see = [&](const search::Outcome& outcome) {
      worst_.see(outcome);
      task_.advance(outcome.designs.size());
    };
    return search::run_search(problem, strategy, pool_,
                              {.scales = scales_, .stop = stop_, .observe = see});
  }

  tl::unexpected<Error> hinted(Error error) const {
    if (error.code == ErrorCode::not_found && opened_.listed) {
      error.message += fmt::format(
          "; the tables hold {} designs, which --strategy exhaustive "
          "goes through",
          opened_.listed->size());
    }
    return tl::unexpected(std::move(error));
  }

  /// Evolution finds one design; a Pareto set is what it finds for many weights.
  Result<search::Found> sweep_weights() {
    FLEETFIT_ASSIGN(scales_, measure_scales());
    search::Found all;
    space::Population seeds(problem_.space->genes().size());
    for (const double weight : kWeights) {
      auto problem = problem_;
      for (auto& cost : problem.costs)
        cost.weight = weight / static_cast<double>(problem.costs.size());
      const auto random = random_.split(fmt::format("weight {}", weight));
      FLEETFIT_ASSIGN(auto strategy,
                      search::make_evolution(*problem.space, random, request_.evolution, seeds));
      auto found = run(problem, *strategy);
      if (!found) return hinted(std::move(found.error()));
      add(std::move(*found), all);
      seeds.resize(0);
      for (const auto& candidate : all.pareto) seeds.add(candidate.design);
    }
    return all;
  }

  void add(search::Found found, search::Found& all) const {
    all.evaluations += found.evaluations;
    all.unknown += found.unknown;
    all.stopped = all.stopped || found.stopped;
    std::ranges::move(found.pareto, std::back_inserter(all.pareto));
    search::drop_dominated(all.pareto);
    if (all.pareto.empty()) {
      all.nearest = std::move(found.nearest);
      return;
    }
    all.nearest.reset();
    all.best = *std::ranges::max_element(all.pareto, {}, &Candidate::accuracy);
  }

  const SearchRequest& request_;
  const OpenedProblem& opened_;
  const search::Problem& problem_;
  core::ThreadPool& pool_;
  core::ProgressTask& task_;
  const std::stop_token& stop_;
  core::Random random_;
  search::Scales scales_;
  Worst worst_;
};

}  // namespace

bool measures(const SearchRequest& request) {
  return measures(request.accuracy) || std::ranges::any_of(costs_of(request), [](const auto& cost) {
           return measures(cost.second->source);
         });
}

Result<SearchReport> search_designs(Workplace& workplace, const SearchRequest& request,
                                    core::Progress& progress, const std::stop_token& stop) {
  FLEETFIT_TRY(check_goal(request));
  FLEETFIT_ASSIGN(auto opened,
                  open_problem({.workplace = workplace, .progress = progress, .stop = stop},
                               {.space = request.space,
                                .accuracy = request.accuracy,
                                .costs = costs_of(request),
                                .sources = request.sources}));
  core::ThreadPool pool(request.sources.threads);
  core::ProgressTask task(progress, {.name = "search", .unit = "designs"});
  Searching searching(request, opened, pool, task, stop);
  const auto start = workplace.clock.now();
  FLEETFIT_ASSIGN(auto found, searching.run());
  const std::chrono::duration<double> elapsed = workplace.clock.now() - start;
  SearchReport report{.space = opened.problem.space,
                      .strategy = searching.strategy(),
                      .found = std::move(found),
                      .sources = opened.reports(),
                      .elapsed_s = elapsed.count(),
                      .spent = opened.spent()};
  for (const auto& cost : opened.problem.costs) {
    report.costs.push_back(cost.name);
    const bool limited = std::isfinite(cost.limit);
    report.budgets.push_back(limited ? std::optional(cost.limit) : std::nullopt);
  }
  report.hypervolume = hypervolume_of(report.found.pareto, searching.worst());
  if (!request.plot.empty()) {
    FLEETFIT_TRY(core::write_file(request.plot, pareto_page(report)));
  }
  return report;
}

}  // namespace fleetfit::app
