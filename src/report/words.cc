#include "fleetfit/report/words.h"

#include <fmt/chrono.h>

#include <cmath>
#include <cstdint>

namespace fleetfit::report {

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

std::string duration_text(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 7200) return fmt::format("{} min {} s", whole / 60, whole % 60);
  if (whole < std::int64_t{48} * 3600)
    return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} days {} h", whole / 86400, whole % 86400 / 3600);
}

std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace fleetfit::report
