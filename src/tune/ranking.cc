#include "tune/ranking.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "fleetfit/search/pareto.h"

namespace fleetfit::tune {
namespace {

/// `by_age`: indices, the oldest trial first.
std::vector<std::size_t> rank_by_sets(std::span<const Standing> standings,
                                      const std::vector<std::size_t>& by_age,
                                      std::size_t objectives) {
  std::vector<double> rows;
  std::vector<double> violations;
  for (const std::size_t i : by_age) {
    // A trial that broke a limit before its training has no values.
    auto values = standings[i].values;
    values.resize(objectives, std::numeric_limits<double>::infinity());
    rows.insert(rows.end(), values.begin(), values.end());
    violations.push_back(standings[i].violation);
  }
  auto ranked = search::best_first({rows, objectives}, violations);
  for (std::size_t& place : ranked) place = by_age[place];
  return ranked;
}

}  // namespace

bool is_before(const Standing& a, const Standing& b) {
  if (a.violation != b.violation) return a.violation < b.violation;
  if (a.values != b.values) return a.values < b.values;
  return a.trial < b.trial;
}

std::vector<std::size_t> ranking(std::span<const Standing> standings) {
  std::vector<std::size_t> indices(standings.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::size_t objectives = 0;
  for (const auto& standing : standings) objectives = std::max(objectives, standing.values.size());
  if (objectives > 1) {
    std::ranges::sort(indices, {}, [&](std::size_t i) { return standings[i].trial; });
    return rank_by_sets(standings, indices, objectives);
  }
  std::ranges::sort(
      indices, [&](std::size_t a, std::size_t b) { return is_before(standings[a], standings[b]); });
  return indices;
}

}  // namespace fleetfit::tune
