#pragma once

#include <chrono>
#include <string>

#include "fleetfit/core/clock.h"

namespace fleetfit::app {

/// A date and time in UTC, ISO 8601.
std::string date_text(std::chrono::system_clock::time_point date);

/// That of now.
std::string today(const core::Clock& clock);

/// How long something may take, as far as one can tell: "40 s", "12 min", "3.5 h".
std::string rough_duration(double seconds);

}  // namespace fleetfit::app
