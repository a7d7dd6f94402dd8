#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "fleetfit/core/clock.h"

/// Dates, times and counts as people read them.
namespace fleetfit::report {

/// A date and time in UTC, ISO 8601.
std::string date_text(std::chrono::system_clock::time_point date);

/// That of now.
std::string today(const core::Clock& clock);

/// How long something may take, as far as one can tell: "40 s", "12 min", "3.5 h".
std::string rough_duration(double seconds);

/// How long something took: "850 ms", "12.3 s", "4 min 10 s", "3 h 20 min".
std::string duration_text(double seconds);

/// "1 thread", "4 threads".
std::string counted(std::int64_t count, std::string_view thing);

}  // namespace fleetfit::report
