#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fleetfit/search/bisection.h"
#include "fleetfit/search/search.h"

namespace fleetfit::search {
namespace {

constexpr std::size_t kSeeds = 250;

Problem without_goals(const Problem& proxy) {
  Problem plain = proxy;
  for (auto& cost : plain.costs) {
    cost.limit = std::numeric_limits<double>::infinity();
    cost.weight = 0;
  }
  return plain;
}

}  // namespace

ProxySolutions::ProxySolutions(const Problem& proxy, core::ThreadPool& pool,
                               const ProxyOptions& options)
    : proxy_(without_goals(proxy)), pool_(&pool), options_(options), index_(*proxy.space) {}

Result<ProxySolutions> ProxySolutions::prepare(const Problem& proxy, core::ThreadPool& pool,
                                               const ProxyOptions& options,
                                               space::DesignBatch listed) {
  ProxySolutions solutions(proxy, pool, options);
  const auto size = proxy.space->size().exact();
  if (!listed.empty() || (size && *size <= options.most_listed)) {
    FLEETFIT_TRY(solutions.evaluate_listed(listed));
  } else if (auto ok = solutions.look_around(); !ok) {
    return tl::unexpected(std::move(ok.error()));
  }
  if (solutions.designs().empty()) {
    return fail(ErrorCode::not_found,
                fmt::format("accuracy and the proxy's costs are known of none of the {} designs of "
                            "the space {} that were tried",
                            solutions.evaluations_, proxy.space->name()));
  }
  return solutions;
}

/// All designs, or those that are listed.
Status ProxySolutions::evaluate_listed(space::DesignBatch designs) {
  is_complete_ = true;
  std::unique_ptr<Strategy> strategy;
  if (designs.empty()) {
    FLEETFIT_ASSIGN(strategy, make_exhaustive(*proxy_.space, {.most = options_.most_listed}));
  } else {
    space::Population listed(designs.genes());
    for (std::size_t i = 0; i < designs.size(); ++i) listed.add(designs[i]);
    strategy = make_listed(std::move(listed));
  }
  FLEETFIT_TRY(run(*strategy, proxy_));
  scales_ = scales_of({.rows = rows_, .objectives = proxy_.objectives()});
  return {};
}

/// A space that is too large to be looked at whole: its scales, and a first view of what is best.
Status ProxySolutions::look_around() {
  FLEETFIT_ASSIGN(scales_, measure_scales(proxy_, *pool_, {.seed = options_.seed}));
  FLEETFIT_ASSIGN(auto strategy,
                  make_nsga2(*proxy_.space, core::Random(options_.seed), options_.evolution));
  return run(*strategy, proxy_);
}

/// Keeps every design whose numbers are known.
Status ProxySolutions::run(Strategy& strategy, const Problem& problem) {
  const auto keep = [&](const Outcome& outcome) {
    evaluations_ += outcome.designs.size();
    for (std::size_t i = 0; i < outcome.designs.size(); ++i) {
      const auto row = outcome.objectives[i];
      if (!std::ranges::all_of(row, [](double v) { return std::isfinite(v); })) continue;
      if (index_.add(outcome.designs[i])) rows_.insert(rows_.end(), row.begin(), row.end());
    }
  };
  FLEETFIT_TRY(run_search(problem, strategy, *pool_, {.scales = scales_, .observe = keep}));
  return {};
}

/// Of all that were met, by what the problem asks for; the cheaper of equally good ones first.
std::vector<std::size_t> ProxySolutions::best_of(const Problem& problem, std::size_t count) const {
  std::vector<double> losses(points().size());
  for (std::size_t i = 0; i < losses.size(); ++i)
    losses[i] = score(problem, scales_, points()[i]).loss;
  std::vector<std::size_t> order(losses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count),
                            [&](std::size_t a, std::size_t b) {
                              if (losses[a] != losses[b]) return losses[a] < losses[b];
                              const double cost_a = points()[a][0];
                              const double cost_b = points()[b][0];
                              return cost_a != cost_b ? cost_a < cost_b : a < b;
                            });
  order.resize(count);
  return order;
}

Result<std::size_t> ProxySolutions::solve(const std::vector<double>& weights) {
  if (const auto known = solutions_.find(weights); known != solutions_.end()) return known->second;
  if (weights.size() != proxy_.costs.size())
    return fail(ErrorCode::invalid_input, "there is not one weight for each cost");
  Problem weighted = proxy_;
  for (std::size_t i = 0; i < weights.size(); ++i) weighted.costs[i].weight = weights[i];
  FLEETFIT_TRY(check(weighted));
  if (!is_complete_) {
    space::Population seeds(index_.designs().genes());
    for (const std::size_t i : best_of(weighted, kSeeds)) seeds.add(designs()[i]);
    const auto random =
        core::Random(options_.seed).split(fmt::format("weights {}", fmt::join(weights, " ")));
    FLEETFIT_ASSIGN(auto strategy,
                    make_evolution(*proxy_.space, random, options_.evolution, seeds));
    FLEETFIT_TRY(run(*strategy, weighted));
  }
  const std::size_t best = best_of(weighted, 1).front();
  solutions_.emplace(weights, best);
  return best;
}

}  // namespace fleetfit::search
