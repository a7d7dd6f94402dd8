#include <algorithm>
#include <numeric>
#include <utility>

#include "fleetfit/adapt/guided.h"
#include "fleetfit/search/problem.h"

namespace fleetfit::adapt {
namespace {

// By how much, as a share, a table may be wrong about a subnet that is worth a try.
constexpr double kTableDoubt = 0.03;

/// A round as strategies see it.
class Round {
 public:
  Round(const SubnetProblem& problem, space::DesignBatch designs,
        std::span<const Evaluation> evaluations)
      : designs_(designs) {
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const double ms = problem.table.subnet_ms(problem.space.path(designs[i]));
      const double loss = -evaluations[i].score();
      rows_.insert(rows_.end(), {ms, loss});
      scores_.push_back({.violation = std::max(0.0, ms / problem.budget_ms - 1), .loss = loss});
    }
  }

  double latency_ms(std::size_t i) const { return rows_[2 * i]; }
  search::Outcome outcome() const {
    return {.designs = designs_, .scores = scores_, .objectives = {rows_, 2}};
  }

 private:
  space::DesignBatch designs_;
  std::vector<double> rows_;
  std::vector<search::Score> scores_;
};

}  // namespace

Result<SearchedSubnets> search_subnets(const SubnetProblem& problem, SubnetQuality& quality,
                                       search::Strategy& strategy,
                                       const SearchSubnetsOptions& options) {
  SearchedSubnets searched;
  space::Population designs(problem.space.genes().size());
  while (true) {
    strategy.propose(designs);
    if (designs.size() == 0) return searched;
    const auto evaluations = quality.evaluate(designs);
    if (!evaluations && options.stop.stop_requested() && !searched.subnets.empty()) {
      searched.stopped = true;
      return searched;
    }
    FLEETFIT_TRY(evaluations);
    const Round round(problem, designs, *evaluations);
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto design = std::as_const(designs)[i];
      searched.subnets.push_back({.design = {design.begin(), design.end()},
                                  .latency_ms = round.latency_ms(i),
                                  .evaluation = (*evaluations)[i]});
    }
    if (options.observe) options.observe(searched);
    strategy.tell(round.outcome());
  }
}

Finalists finalists(const SearchedSubnets& searched, double budget_ms,
                    const FinalistOptions& options) {
  const auto& subnets = searched.subnets;
  std::vector<std::size_t> order(subnets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return subnets[i].evaluation.score(); });
  Finalists chosen;
  const auto take_within = [&](double limit_ms, std::size_t count) {
    for (const std::size_t i : order) {
      if (count == 0) return;
      if (subnets[i].latency_ms > limit_ms) continue;
      --count;
      if (std::ranges::find(chosen.near, i) == chosen.near.end()) chosen.near.push_back(i);
    }
  };
  take_within(budget_ms * (1 + kTableDoubt), options.near);
  take_within(budget_ms * (1 - kTableDoubt), (options.near + 1) / 2);
  take_within(budget_ms * (1 - 3 * kTableDoubt), (options.near + 3) / 4);
  std::vector<double> points;
  for (const auto& subnet : subnets)
    points.insert(points.end(), {subnet.latency_ms, -subnet.evaluation.score()});
  const auto pareto = search::pareto_set({points, 2});
  const std::size_t levels = std::min(options.levels, pareto.size());
  for (std::size_t level = 0; level < levels; ++level)
    chosen.levels.push_back(pareto[levels == 1 ? 0 : level * (pareto.size() - 1) / (levels - 1)]);
  return chosen;
}

}  // namespace fleetfit::adapt
