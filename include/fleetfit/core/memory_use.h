#pragma once

#include <cstdint>

namespace fleetfit::core {

/// The most memory that this process has had at a time, as the system counts it; 0 if it does not
/// tell.
std::int64_t peak_memory_bytes();

}  // namespace fleetfit::core
