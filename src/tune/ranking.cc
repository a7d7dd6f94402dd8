#include "tune/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "fleetfit/search/pareto.h"

namespace fleetfit::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool breaks_limits(const Standing& standing) { return standing.violation > 0; }

// Adds what one objective says of how far a set's members are from their neighbours.
void add_distances(std::span<const Standing> standings, std::size_t objective,
                   std::vector<std::size_t> set, std::vector<double>& distances) {
  const auto value = [&](std::size_t i) { return standings[i].values[objective]; };
  std::ranges::sort(set, [&](std::size_t a, std::size_t b) {
    return std::tuple(value(a), standings[a].trial) < std::tuple(value(b), standings[b].trial);
  });
  const double range = value(set.back()) - value(set.front());
  distances[set.front()] = kInfinity;
  distances[set.back()] = kInfinity;
  if (!(range > 0) || !std::isfinite(range)) return;
  for (std::size_t k = 1; k + 1 < set.size(); ++k) {
    distances[set[k]] += (value(set[k + 1]) - value(set[k - 1])) / range;
  }
}

void sort_set(std::span<const Standing> standings, std::span<std::size_t> set,
              std::vector<double>& distances) {
  const std::vector<std::size_t> members(set.begin(), set.end());
  for (std::size_t o = 0; o < standings[set[0]].values.size(); ++o) {
    add_distances(standings, o, members, distances);
  }
  std::ranges::sort(set, [&](std::size_t a, std::size_t b) {
    if (distances[a] != distances[b]) return distances[a] > distances[b];
    return standings[a].trial < standings[b].trial;
  });
}

void sort_by_sets(std::span<const Standing> standings, std::span<std::size_t> indices) {
  std::vector<double> rows;
  for (const std::size_t i : indices) {
    rows.insert(rows.end(), standings[i].values.begin(), standings[i].values.end());
  }
  const auto numbers = search::front_numbers({rows, standings[indices[0]].values.size()});
  std::vector<std::uint32_t> front_of(standings.size());
  for (std::size_t k = 0; k < indices.size(); ++k) front_of[indices[k]] = numbers[k];
  std::ranges::stable_sort(indices, {}, [&](std::size_t i) { return front_of[i]; });
  std::vector<double> distances(standings.size());
  for (std::size_t begin = 0; begin < indices.size();) {
    std::size_t end = begin;
    while (end < indices.size() && front_of[indices[end]] == front_of[indices[begin]]) ++end;
    sort_set(standings, indices.subspan(begin, end - begin), distances);
    begin = end;
  }
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
  std::ranges::sort(
      indices, [&](std::size_t a, std::size_t b) { return is_before(standings[a], standings[b]); });
  const auto breaking =
      std::ranges::find_if(indices, [&](std::size_t i) { return breaks_limits(standings[i]); });
  const std::span<std::size_t> keeping(indices.begin(), breaking);
  if (!keeping.empty() && standings[keeping[0]].values.size() > 1) {
    sort_by_sets(standings, keeping);
  }
  return indices;
}

}  // namespace fleetfit::tune
