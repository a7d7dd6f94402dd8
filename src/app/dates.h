#pragma once

#include <chrono>
#include <string>

#include "fleetfit/core/clock.h"

namespace fleetfit::app {

/// A date and time in UTC, ISO 8601.
std::string date_text(std::chrono::system_clock::time_point date);

/// That of now.
std::string today(const core::Clock& clock);

}  // namespace fleetfit::app
