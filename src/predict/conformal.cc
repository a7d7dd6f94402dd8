#include "predict/conformal.h"

#include <algorithm>
#include <cmath>

namespace fleetfit::predict {

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

}  // namespace fleetfit::predict
