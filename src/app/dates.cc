#include "app/dates.h"

#include <fmt/chrono.h>

#include <chrono>

namespace fleetfit::app {

std::string today(const core::Clock& clock) {
  const auto now = std::chrono::system_clock::to_time_t(clock.date());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace fleetfit::app
