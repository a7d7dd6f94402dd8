#pragma once

#include <cstdint>
#include <span>

#include "fleetfit/core/statistics.h"

namespace fleetfit::core {
struct Fields;
}

/// Statistics of the times of runs in the order in which they were taken. Neighbouring runs are not
/// independent (the machine is slow for a while, then fast again), so the intervals here are
/// widened by how long such phases last; for independent runs they are the ordinary ones. All
/// series must be finite and not empty.
namespace fleetfit::measure {

/// The quantile 0.975 of Student's distribution, by the first terms of its expansion: within 2 %
/// for 4 degrees of freedom and more, too small for fewer.
double student95(double freedom);

/// Of how many runs one independent run is worth: 1 if they are independent, more if neighbours
/// resemble each other (1 + twice the sum of the autocorrelations up to where they fade, Geyer's
/// initial positive sequence).
double correlation_length(std::span<const double> series);

/// How many independent runs tell as much of the median as this series does.
double independent_runs(std::span<const double> series);

/// 95 % interval of the median: two of the sorted values, so it assumes no distribution. With
/// fewer than 6 values it is all of their range, and less certain than 95 %.
core::Interval median_interval(std::span<const double> series);

/// 95 % interval of the mean.
core::Interval mean_interval(std::span<const double> series);

/// Half of the interval's width as a share of `center`; 0 for an interval without width.
double relative_half_width(const core::Interval& interval, double center);

/// Values further from the median than 5 standard deviations (estimated by the MAD) and than 1 %.
std::int64_t count_outliers(std::span<const double> series);

struct Drift {
  double relative = 0;       ///< the second half's median against the first's: 0.05 = 5 % slower
  bool significant = false;  ///< the intervals of the two halves do not meet

  bool operator==(const Drift&) const = default;
};
core::Fields fields_of(const Drift*);

/// Nothing significant in fewer than 12 values.
Drift drift_of(std::span<const double> series);

/// Whether the values fall into two groups (each at least 3 % of them, 10 % apart) that explain
/// nine tenths of the variance, as those of a throttled process do.
bool is_bimodal(std::span<const double> series);

/// Whether the last 4 medians of requests agree within `tolerance` (relative), and are not still
/// becoming smaller step by step. Warm-up ends there.
bool is_steady(std::span<const double> request_medians, double tolerance);

}  // namespace fleetfit::measure
