#pragma once

#include <span>
#include <vector>

#include "fleetfit/core/result.h"

/// Statistics of a sample, and rank correlations of two. All fail with `invalid_input` on a sample
/// that is too small (empty, unless another size is stated) and on NaN. Those that do arithmetic
/// with the values also refuse infinities; those that use only their order (ranks, spearman) take
/// them.
namespace fleetfit::core {

Result<double> mean(std::span<const double> values);

/// The middle value, or the mean of the two in the middle.
Result<double> median(std::span<const double> values);

/// Median absolute deviation from the median. Unscaled: multiply by 1.4826 to estimate a normal
/// distribution's standard deviation.
Result<double> mad(std::span<const double> values);

/// The value below which the share `probability` (0 to 1) of the sample lies, by linear
/// interpolation between neighbours (type 7 of Hyndman and Fan, the default of R and NumPy).
Result<double> quantile(std::span<const double> values, double probability);

/// The same of at least one value, finite and in rising order, for a probability of 0 to 1.
double quantile_of_sorted(std::span<const double> sorted, double probability);

/// Sum of squared deviations divided by n-1. Needs two values.
Result<double> variance(std::span<const double> values);

/// Square root of the variance. Needs two values.
Result<double> stddev(std::span<const double> values);

struct Interval {
  double low = 0;
  double high = 0;

  bool operator==(const Interval&) const = default;
};

/// The rank of each value, from 1; equal values share the average of their ranks. Empty for no
/// values.
Result<std::vector<double>> ranks(std::span<const double> values);

/// Correlations lie in [-1, 1]. They fail with `invalid_input` if the two samples differ in size,
/// have fewer than two values, or if all values of one are equal, for which no correlation is
/// defined.

/// Pearson's linear correlation.
Result<double> pearson(std::span<const double> x, std::span<const double> y);

/// Spearman's rank correlation; ties have average ranks.
Result<double> spearman(std::span<const double> x, std::span<const double> y);

}  // namespace fleetfit::core
