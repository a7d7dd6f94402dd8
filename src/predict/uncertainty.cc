#include <algorithm>
#include <cmath>

#include "predict/uncertainty.h"

namespace fleetfit::predict {
namespace {

// An effect that was never seen at all.
const double kNew = std::log(2.0);
// Beyond this one guess is as good as another.
constexpr double kMost = 3;
// What is small beside the largest value that was measured does not matter: whether 0 or 8 of a
// million values are activated changes no price.
constexpr double kSmallShare = 0.01;

double away(double value, double low, double high) {
  if (value >= low && value <= high) return 0;
  if (high == 0) return kNew;
  const double small = 1 + kSmallShare * high;
  const double bound = value < low ? low : high;
  return std::min(kMost, std::abs(std::log((small + value) / (small + bound))));
}

}  // namespace

double conformal_score90(std::vector<double> scores) {
  if (scores.empty()) return 0;
  std::ranges::sort(scores);
  const double place = std::ceil(0.9 * static_cast<double>(scores.size() + 1) - 1e-9);
  return scores[std::min(scores.size(), static_cast<std::size_t>(place)) - 1];
}

core::Interval around(double value, double log_width) {
  return {.low = value * std::exp(-log_width), .high = value * std::exp(log_width)};
}

std::vector<double> log_errors(std::span<const double> predicted,
                               std::span<const double> measured) {
  std::vector<double> errors(measured.size());
  for (std::size_t i = 0; i < errors.size(); ++i)
    errors[i] = std::abs(std::log(measured[i] / predicted[i]));
  return errors;
}

double log_distance(std::span<const double> a, std::span<const double> b) {
  return distance_of_logs(log_features(a), log_features(b));
}

double distance_of_logs(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return a.empty() ? 0 : std::sqrt(sum / static_cast<double>(a.size()));
}

std::vector<double> log_features(std::span<const double> row) {
  std::vector<double> logs;
  logs.reserve(row.size());
  for (const double value : row) logs.push_back(std::log1p(std::abs(value)));
  return logs;
}

Excess excess_of(std::span<const double> row, std::span<const double> low,
                 std::span<const double> high) {
  Excess worst;
  for (std::size_t j = 0; j < row.size(); ++j) {
    const double log = away(row[j], low[j], high[j]);
    if (log > worst.log) worst = {.log = log, .feature = j};
  }
  return worst;
}

void clamp_into(std::span<const double> row, std::span<const double> low,
                std::span<const double> high, std::vector<double>& out) {
  for (std::size_t j = 0; j < row.size(); ++j) out.push_back(std::clamp(row[j], low[j], high[j]));
}

}  // namespace fleetfit::predict
