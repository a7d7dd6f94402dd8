#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace fleetfit::train {

/// The rate of a step: rises from a tenth to the highest in the first fifth of all steps, then
/// falls along a cosine to nearly nothing.
inline double one_cycle_rate(double highest, std::int64_t step, std::int64_t steps) {
  constexpr double kWarmUp = 0.2;
  constexpr double kStart = 0.1;
  const double at =
      (static_cast<double>(step) + 0.5) / static_cast<double>(std::max<std::int64_t>(steps, 1));
  if (at < kWarmUp) return highest * (kStart + (1 - kStart) * at / kWarmUp);
  const double fall = (at - kWarmUp) / (1 - kWarmUp);
  return highest * 0.5 * (1 + std::cos(std::numbers::pi * std::min(fall, 1.0)));
}

}  // namespace fleetfit::train
