#include <algorithm>
#include <cassert>
#include <cmath>

#include "fleetfit/learned/model.h"

namespace fleetfit::learned {

double Risk::chance(double room) const {
  assert(is_known());
  if (room < excess.front()) return 1;
  const auto above = std::ranges::upper_bound(excess, room);
  if (above == excess.end()) return 0;
  const double low = *(above - 1);
  const double below = static_cast<double>(above - excess.begin()) - 1;
  const double share =
      (below + (room - low) / (*above - low)) / static_cast<double>(excess.size() - 1);
  return 1 - share;
}

double Risk::room(double chance) const {
  assert(is_known());
  const double place = (1 - std::clamp(chance, 0.0, 1.0)) * static_cast<double>(excess.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), excess.size() - 2);
  return std::lerp(excess[below], excess[below + 1], place - static_cast<double>(below));
}

}  // namespace fleetfit::learned
