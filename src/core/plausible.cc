#include "fleetfit/core/plausible.h"

#include <fmt/format.h>

namespace fleetfit::core {

std::optional<std::string> absurdity(const PlausibleRange& range, double value) {
  if (range.least > 0 && value <= 0) return "is not positive";
  if (value > range.most) return fmt::format("is no {}: {}", range.what, range.too_large);
  if (range.least == 0 && value < 0) return fmt::format("is no {}: it is negative", range.what);
  if (!(value >= range.least))
    return fmt::format("is no {}: it is less than {:g}", range.what, range.least);
  return std::nullopt;
}

}  // namespace fleetfit::core
