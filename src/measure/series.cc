#include "fleetfit/measure/series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace fleetfit::measure {
namespace {

using core::Interval;

constexpr double kNormal95 = 1.959964;
constexpr double kMadToDeviation = 1.4826;
constexpr double kOutlierDeviations = 5;
constexpr double kOutlierShare = 0.01;
constexpr std::size_t kLongestLag = 200;
constexpr std::size_t kLeastHalf = 6;
constexpr std::size_t kSteadyRequests = 4;

// Where the number of independent runs is itself an estimate, it is not certain enough for the
// normal distribution.
double quantile95(std::size_t runs, double independent) {
  return independent >= static_cast<double>(runs) ? kNormal95 : student95(independent - 1);
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> sorted_copy(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  return sorted;
}

double median_of_sorted(std::span<const double> sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : std::midpoint(sorted[half - 1], sorted[half]);
}

double median_of(std::span<const double> values) { return median_of_sorted(sorted_copy(values)); }

double autocovariance(std::span<const double> centered, std::size_t lag) {
  double sum = 0;
  for (std::size_t i = lag; i < centered.size(); ++i) sum += centered[i] * centered[i - lag];
  return sum;
}

// Which side of the median each value is on: what the median's uncertainty depends on.
std::vector<double> sides_of(std::span<const double> series, double median) {
  std::vector<double> sides(series.size());
  std::ranges::transform(series, sides.begin(),
                         [&](double v) { return v < median ? 0.0 : (v > median ? 1.0 : 0.5); });
  return sides;
}

bool falls_step_by_step(std::span<const double> values, double least_fall) {
  return std::ranges::adjacent_find(values, std::less_equal<>()) == values.end() &&
         values.front() - values.back() > least_fall;
}

}  // namespace

double student95(double freedom) {
  const double some = std::max(freedom, 1.0);
  return kNormal95 * (1 + 1.2104 / some + 1.4402 / (some * some));
}

double correlation_length(std::span<const double> series) {
  std::vector<double> centered(series.begin(), series.end());
  const double center = mean_of(series);
  for (double& value : centered) value -= center;
  const double variance = autocovariance(centered, 0);
  if (!(variance > 0)) return 1;
  const std::size_t last = std::min(series.size() / 3, kLongestLag);
  double length = -1;
  for (std::size_t lag = 0; lag + 1 <= last; lag += 2) {
    const double pair =
        (autocovariance(centered, lag) + autocovariance(centered, lag + 1)) / variance;
    if (pair <= 0) break;
    length += 2 * pair;
  }
  return std::max(length, 1.0);
}

double independent_runs(std::span<const double> series) {
  return static_cast<double>(series.size()) /
         correlation_length(sides_of(series, median_of(series)));
}

Interval median_interval(std::span<const double> series) {
  const auto sorted = sorted_copy(series);
  const auto size = static_cast<double>(sorted.size());
  const double independent = independent_runs(series);
  const double width = quantile95(series.size(), independent) * size / std::sqrt(independent);
  const double rank = std::round((size - width) / 2);
  const auto below = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  return {sorted[below], sorted[sorted.size() - 1 - below]};
}

Interval mean_interval(std::span<const double> series) {
  const double mean = mean_of(series);
  if (series.size() < 2) return {mean, mean};
  const auto size = static_cast<double>(series.size());
  double squares = 0;
  for (const double value : series) squares += (value - mean) * (value - mean);
  const double independent = size / correlation_length(series);
  const double error =
      quantile95(series.size(), independent) * std::sqrt(squares / (size - 1) / independent);
  return {mean - error, mean + error};
}

double relative_half_width(const Interval& interval, double center) {
  const double width = interval.high - interval.low;
  if (width <= 0) return 0;
  return center > 0 ? width / 2 / center : std::numeric_limits<double>::infinity();
}

std::int64_t count_outliers(std::span<const double> series) {
  const double median = median_of(series);
  std::vector<double> distances(series.size());
  std::ranges::transform(series, distances.begin(), [&](double v) { return std::abs(v - median); });
  const double far = std::max(kOutlierDeviations * kMadToDeviation * median_of(distances),
                              kOutlierShare * std::abs(median));
  return std::ranges::count_if(distances, [&](double d) { return d > far; });
}

Drift drift_of(std::span<const double> series) {
  const std::size_t half = series.size() / 2;
  if (half < kLeastHalf) return {};
  const auto early = series.first(half);
  const auto late = series.last(half);
  const double before = median_of(early);
  if (!(before > 0)) return {};
  const auto early_interval = median_interval(early);
  const auto late_interval = median_interval(late);
  return {.relative = median_of(late) / before - 1,
          .significant =
              early_interval.high < late_interval.low || late_interval.high < early_interval.low};
}

bool is_bimodal(std::span<const double> series) {
  const auto sorted = sorted_copy(series);
  const std::size_t size = sorted.size();
  const auto least = static_cast<std::size_t>(std::ceil(0.03 * static_cast<double>(size)));
  const double mean = mean_of(series);
  double squares = 0;
  for (const double value : sorted) squares += (value - mean) * (value - mean);
  double best = 0;
  double low_sum = 0;
  double low_mean = mean;
  double high_mean = mean;
  for (std::size_t low = 1; low < size; ++low) {
    low_sum += sorted[low - 1];
    if (low < least || size - low < least) continue;
    const auto lows = static_cast<double>(low);
    const auto highs = static_cast<double>(size - low);
    const double left = low_sum / lows;
    const double right = (mean * static_cast<double>(size) - low_sum) / highs;
    const double between =
        lows * (left - mean) * (left - mean) + highs * (right - mean) * (right - mean);
    if (between <= best) continue;
    best = between;
    low_mean = left;
    high_mean = right;
  }
  return size >= 2 * kLeastHalf && best > 0.9 * squares && high_mean > 1.1 * low_mean;
}

bool is_steady(std::span<const double> request_medians, double tolerance) {
  if (request_medians.size() < kSteadyRequests) return false;
  const auto last = request_medians.last(kSteadyRequests);
  const auto [low, high] = std::ranges::minmax(last);
  return high - low <= tolerance * low && !falls_step_by_step(last, tolerance * low / 8);
}

}  // namespace fleetfit::measure
