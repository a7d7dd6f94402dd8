#pragma once

#include <span>
#include <vector>

#include "fleetfit/core/statistics.h"

/// Intervals that hold nine of ten new values, whatever the distribution, as long as the new ones
/// come from where the old ones came from.
namespace fleetfit::predict {

/// The score that with a probability of 90 % is not exceeded by the next one: of n scores the
/// ceil(0.9 (n + 1))-th smallest, or the largest if n is too small for that. 0 for no scores.
double conformal_score90(std::vector<double> scores);

/// [value / e^width, value * e^width].
core::Interval around(double value, double log_width);

/// |log(measured / predicted)| for each pair of positive numbers.
std::vector<double> log_errors(std::span<const double> predicted, std::span<const double> measured);

}  // namespace fleetfit::predict
