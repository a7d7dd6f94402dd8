#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

/// Dates as they are kept and written: in UTC, with milliseconds.
namespace fleetfit::core {

using Time = std::chrono::sys_time<std::chrono::milliseconds>;

/// "2026-11-16T08:00:00.000Z"
std::string time_text(Time time);

/// With or without a fraction of a second, from 1970 on; `invalid_input` on another text.
Result<Time> parse_time(std::string_view text);

}  // namespace fleetfit::core
