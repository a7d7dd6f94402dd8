#include "fleetfit/core/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace fleetfit::core {
namespace {

Status check_finite(std::span<const double> values, std::size_t needed) {
  if (values.size() < needed) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a sample of {} values is too small, at least {} needed", values.size(),
                            needed));
  }
  const auto bad = std::ranges::find_if_not(values, [](double v) { return std::isfinite(v); });
  if (bad == values.end()) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("value {} of the sample is {}", bad - values.begin(), *bad));
}

Status check_ordered(std::span<const double> values) {
  const auto bad = std::ranges::find_if(values, [](double v) { return std::isnan(v); });
  if (bad == values.end()) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("value {} of the sample is not a number", bad - values.begin()));
}

Status check_pair(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size()) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("samples of {} and {} values cannot be correlated", x.size(), y.size()));
  }
  if (x.size() < 2) {
    return fail(ErrorCode::invalid_input, "a correlation needs at least two pairs of values");
  }
  return {};
}

tl::unexpected<Error> no_correlation_of_constants() {
  return fail(ErrorCode::invalid_input, "no correlation is defined for a sample of equal values");
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Reorders the values.
double median_of(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return std::midpoint(*std::max_element(values.begin(), middle), *middle);
}

std::vector<double> copy_of(std::span<const double> values) {
  return {values.begin(), values.end()};
}

Status check_options(const BootstrapOptions& options) {
  if (options.resamples < 1) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a bootstrap needs at least one resample, not {}", options.resamples));
  }
  if (!(options.confidence > 0 && options.confidence < 1)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a confidence lies between 0 and 1, not {}", options.confidence));
  }
  return {};
}

Interval percentile_interval(std::vector<double> statistics, double confidence) {
  std::ranges::sort(statistics);
  const double outside = (1 - confidence) / 2;
  return {quantile_of_sorted(statistics, outside), quantile_of_sorted(statistics, 1 - outside)};
}

// The median of the multiset in which `sorted[i]` occurs `counts[i]` times.
double median_of_counts(std::span<const double> sorted, std::span<const std::uint32_t> counts) {
  const std::size_t size = sorted.size();
  std::size_t seen = 0;
  std::size_t i = 0;
  while ((seen += counts[i]) < (size + 1) / 2) ++i;
  const double lower = sorted[i];
  if (size % 2 == 1 || seen > size / 2) return lower;
  do ++i;
  while (counts[i] == 0);
  return std::midpoint(lower, sorted[i]);
}

double clamp_correlation(double value) { return std::clamp(value, -1.0, 1.0); }

std::vector<std::size_t> order_by(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  return order;
}

std::int64_t pairs_among(std::int64_t count) { return count * (count - 1) / 2; }

// Pairs of equal neighbours' groups in a list of `size` items.
template <class Same>
std::int64_t tied_pairs(std::size_t size, Same same) {
  std::int64_t pairs = 0;
  std::size_t start = 0;
  for (std::size_t i = 1; i <= size; ++i) {
    if (i < size && same(i - 1, i)) continue;
    pairs += pairs_among(static_cast<std::int64_t>(i - start));
    start = i;
  }
  return pairs;
}

// Sorts the values and gives the number of pairs that stood in the wrong order.
std::int64_t sort_counting_inversions(std::span<double> values, std::span<double> spare) {
  const std::size_t half = values.size() / 2;
  if (half == 0) return 0;
  std::int64_t inversions = sort_counting_inversions(values.first(half), spare.first(half)) +
                            sort_counting_inversions(values.subspan(half), spare.subspan(half));
  std::size_t left = 0;
  std::size_t right = half;
  for (double& out : spare) {
    const bool take_left = right == values.size() || (left < half && values[left] <= values[right]);
    if (!take_left) inversions += static_cast<std::int64_t>(half - left);
    out = values[take_left ? left++ : right++];
  }
  std::ranges::copy(spare, values.begin());
  return inversions;
}

}  // namespace

Result<double> mean(std::span<const double> values) {
  return check_finite(values, 1).map([&] { return mean_of(values); });
}

Result<double> median(std::span<const double> values) {
  return check_finite(values, 1).map([&] {
    auto copy = copy_of(values);
    return median_of(copy);
  });
}

Result<double> mad(std::span<const double> values) {
  return check_finite(values, 1).map([&] {
    auto copy = copy_of(values);
    const double middle = median_of(copy);
    for (double& value : copy) value = std::abs(value - middle);
    return median_of(copy);
  });
}

double quantile_of_sorted(std::span<const double> sorted, double probability) {
  const double place = probability * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= sorted.size()) return sorted.back();
  return std::lerp(sorted[below], sorted[below + 1], place - static_cast<double>(below));
}

Result<double> quantile(std::span<const double> values, double probability) {
  if (!(probability >= 0 && probability <= 1)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a quantile's probability lies in 0 to 1, not {}", probability));
  }
  return check_finite(values, 1).map([&] {
    auto sorted = copy_of(values);
    std::ranges::sort(sorted);
    return quantile_of_sorted(sorted, probability);
  });
}

Result<double> variance(std::span<const double> values) {
  return check_finite(values, 2).map([&] {
    const double center = mean_of(values);
    double squares = 0;
    for (const double value : values) squares += (value - center) * (value - center);
    return squares / static_cast<double>(values.size() - 1);
  });
}

Result<double> stddev(std::span<const double> values) {
  return variance(values).map([](double square) { return std::sqrt(square); });
}

Result<Interval> bootstrap_interval(std::span<const double> values, const Statistic& statistic,
                                    Random random, const BootstrapOptions& options) {
  FLEETFIT_TRY(check_finite(values, 1).and_then([&] { return check_options(options); }));

  auto sorted = copy_of(values);
  std::ranges::sort(sorted);
  std::vector<double> resample(sorted.size());
  std::vector<double> statistics(static_cast<std::size_t>(options.resamples));
  for (double& out : statistics) {
    for (double& value : resample) value = sorted[random.below(sorted.size())];
    out = statistic(resample);
    if (!std::isfinite(out)) {
      return fail(ErrorCode::invalid_input, fmt::format("the statistic of a resample is {}", out));
    }
  }
  return percentile_interval(std::move(statistics), options.confidence);
}

Result<Interval> bootstrap_median_interval(std::span<const double> values, Random random,
                                           const BootstrapOptions& options) {
  FLEETFIT_TRY(check_finite(values, 1).and_then([&] { return check_options(options); }));

  auto sorted = copy_of(values);
  std::ranges::sort(sorted);
  std::vector<std::uint32_t> counts(sorted.size());
  std::vector<double> statistics(static_cast<std::size_t>(options.resamples));
  for (double& out : statistics) {
    std::ranges::fill(counts, 0u);
    for (std::size_t i = 0; i < sorted.size(); ++i) ++counts[random.below(sorted.size())];
    out = median_of_counts(sorted, counts);
  }
  return percentile_interval(std::move(statistics), options.confidence);
}

Result<std::vector<double>> ranks(std::span<const double> values) {
  return check_ordered(values).map([&] {
    const auto order = order_by(values);
    std::vector<double> result(values.size());
    for (std::size_t start = 0; start < order.size();) {
      std::size_t end = start;
      while (end < order.size() && values[order[end]] == values[order[start]]) ++end;
      const double shared = static_cast<double>(start + 1 + end) / 2;
      for (; start < end; ++start) result[order[start]] = shared;
    }
    return result;
  });
}

Result<double> pearson(std::span<const double> x, std::span<const double> y) {
  FLEETFIT_TRY(check_pair(x, y).and_then([&] { return check_finite(x, 2); }).and_then([&] {
    return check_finite(y, 2);
  }));

  const double center_x = mean_of(x);
  const double center_y = mean_of(y);
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - center_x;
    const double dy = y[i] - center_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  if (!(xx > 0 && yy > 0)) return no_correlation_of_constants();
  return clamp_correlation(xy / xx * std::sqrt(xx / yy));
}

Result<double> spearman(std::span<const double> x, std::span<const double> y) {
  FLEETFIT_TRY(check_pair(x, y));
  FLEETFIT_ASSIGN(const auto ranks_x, ranks(x));
  FLEETFIT_ASSIGN(const auto ranks_y, ranks(y));
  return pearson(ranks_x, ranks_y);
}

// Knight's algorithm (1966): sorted by x, the swaps that sort y are the discordant pairs.
Result<double> kendall(std::span<const double> x, std::span<const double> y) {
  FLEETFIT_TRY(check_pair(x, y).and_then([&] { return check_ordered(x); }).and_then([&] {
    return check_ordered(y);
  }));

  std::vector<std::pair<double, double>> points(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) points[i] = {x[i], y[i]};
  std::ranges::sort(points);
  const auto same_x = [&](std::size_t i, std::size_t j) {
    return points[i].first == points[j].first;
  };
  const auto same_point = [&](std::size_t i, std::size_t j) { return points[i] == points[j]; };
  const std::int64_t tied_x = tied_pairs(points.size(), same_x);
  const std::int64_t tied_both = tied_pairs(points.size(), same_point);

  std::vector<double> by_x(points.size());
  std::vector<double> spare(points.size());
  std::ranges::transform(points, by_x.begin(), [](const auto& point) { return point.second; });
  const std::int64_t discordant = sort_counting_inversions(by_x, spare);
  const auto same_y = [&](std::size_t i, std::size_t j) { return by_x[i] == by_x[j]; };
  const std::int64_t tied_y = tied_pairs(by_x.size(), same_y);

  const std::int64_t all = pairs_among(static_cast<std::int64_t>(points.size()));
  if (tied_x == all || tied_y == all) return no_correlation_of_constants();
  const auto difference = static_cast<double>(all - tied_x - tied_y + tied_both - 2 * discordant);
  const auto pairs_x = static_cast<double>(all - tied_x);
  const auto pairs_y = static_cast<double>(all - tied_y);
  return clamp_correlation(difference / std::sqrt(pairs_x * pairs_y));
}

}  // namespace fleetfit::core
