#include "predict/distance.h"

#include <cmath>

namespace fleetfit::predict {

double log_distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double away = std::log((1 + std::abs(a[i])) / (1 + std::abs(b[i])));
    sum += away * away;
  }
  return a.empty() ? 0 : std::sqrt(sum / static_cast<double>(a.size()));
}

}  // namespace fleetfit::predict
