#include "app/dates.h"

#include <fmt/chrono.h>

namespace fleetfit::app {

std::string date_text(std::chrono::system_clock::time_point date) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(date)));
}

std::string today(const core::Clock& clock) { return date_text(clock.date()); }

std::string rough_duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  if (seconds < 100 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace fleetfit::app
