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

double clamp_correlation(double value) { return std::clamp(value, -1.0, 1.0); }

std::vector<std::size_t> order_by(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  return order;
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

}  // namespace fleetfit::core
