#include "predict/distance.h"

#include <cmath>

namespace fleetfit::predict {

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

}  // namespace fleetfit::predict
