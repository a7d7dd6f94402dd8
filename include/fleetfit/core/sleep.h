#pragma once

#include <chrono>
#include <stop_token>

namespace fleetfit::core {

/// Sleeps; false if it was woken by a request to stop.
bool sleep_unless_stopped(std::chrono::milliseconds duration, const std::stop_token& stop);

}  // namespace fleetfit::core
