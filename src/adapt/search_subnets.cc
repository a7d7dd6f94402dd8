#include <algorithm>
#include <set>
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
    if (!evaluations) return tl::unexpected(evaluations.error());
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

std::vector<std::size_t> finalists(const SearchedSubnets& searched, double budget_ms,
                                   const FinalistOptions& options) {
  const auto& subnets = searched.subnets;
  std::set<std::size_t> chosen;
  std::vector<std::size_t> within;
  std::vector<double> points;
  for (std::size_t i = 0; i < subnets.size(); ++i) {
    points.insert(points.end(), {subnets[i].latency_ms, -subnets[i].evaluation.score()});
    if (subnets[i].latency_ms <= budget_ms * (1 + kTableDoubt)) within.push_back(i);
  }
  std::ranges::stable_sort(within, std::ranges::greater(),
                           [&](std::size_t i) { return subnets[i].evaluation.score(); });
  within.resize(std::min(within.size(), options.near));
  chosen.insert(within.begin(), within.end());
  const auto pareto = search::pareto_set({points, 2});
  const std::size_t levels = std::min(options.levels, pareto.size());
  for (std::size_t level = 0; level < levels; ++level)
    chosen.insert(pareto[levels == 1 ? 0 : level * (pareto.size() - 1) / (levels - 1)]);
  return {chosen.begin(), chosen.end()};
}

}  // namespace fleetfit::adapt
