#pragma once

#include <string>

#include "fleetfit/core/clock.h"

namespace fleetfit::app {

/// The date and time in UTC, ISO 8601.
std::string today(const core::Clock& clock);

}  // namespace fleetfit::app
