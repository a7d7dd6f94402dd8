#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/core/statistics.h"

/// How far prices may be off: by how wrong past ones were, and by how far a kernel is from what was
/// measured. Intervals hold nine of ten new values, whatever the distribution, as long as the new
/// ones come from where the old ones came from.
namespace fleetfit::predict {

/// The score that with a probability of 90 % is not exceeded by the next one: of n scores the
/// ceil(0.9 (n + 1))-th smallest, or the largest if n is too small for that. 0 for no scores.
double conformal_score90(std::vector<double> scores);

/// [value / e^width, value * e^width].
core::Interval around(double value, double log_width);

/// |log(measured / predicted)| for each pair of positive numbers.
std::vector<double> log_errors(std::span<const double> predicted, std::span<const double> measured);

/// How unlike two rows of non-negative features are: the root of the mean squared logarithm of the
/// ratio, where zero counts as nearly one. 0.7 means that a typical feature differs by a factor
/// of 2.
double log_distance(std::span<const double> a, std::span<const double> b);

/// The same for rows of `log_features`, of which many are compared.
double distance_of_logs(std::span<const double> a, std::span<const double> b);
std::vector<double> log_features(std::span<const double> row);

/// How far a row is outside of the box of features that was measured, by the feature that is
/// farthest.
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
