#pragma once

#include <cstdint>

namespace fleetfit::core {

/// The most memory that this process has had at a time, as the system counts it; 0 if it does not
/// tell.
std::int64_t peak_memory_bytes();

/// The memory that all processes have now that the process has started, and those that these have,
/// without the process itself.
std::int64_t memory_bytes_of_children(int pid);

}  // namespace fleetfit::core
