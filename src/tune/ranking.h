#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// Which trials are better.
namespace fleetfit::tune {

/// A trial at the end of a level.
struct Standing {
  std::size_t trial = 0;
  std::vector<double> values = {};  ///< to be minimized
  double violation = 0;             ///< of the study's limits
};

/// Of trials with one objective: those that break limits come last, the less they break them the
/// earlier; of equal ones the older.
bool is_before(const Standing& a, const Standing& b);

/// Indices, best first. Several objectives: by non-dominated sets, in a set the lonelier first; of
/// equal ones the older. Depends on what there is, not on its order.
std::vector<std::size_t> ranking(std::span<const Standing> standings);

}  // namespace fleetfit::tune
