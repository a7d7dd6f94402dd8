#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// The box of features that was measured.
namespace fleetfit::predict {

/// How far a row is outside, by the feature that is farthest.
struct Excess {
  double log = 0;  ///< of the ratio to the bound; 0 inside, at most 3
  std::size_t feature = 0;
};

/// Differences that are small beside the upper bound do not count; a feature that was always zero
/// and is not counts as a factor of 2.
Excess excess_of(std::span<const double> row, std::span<const double> low,
                 std::span<const double> high);

/// Appends the nearest row inside.
void clamp_into(std::span<const double> row, std::span<const double> low,
                std::span<const double> high, std::vector<double>& out);

}  // namespace fleetfit::predict
