#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "fleetfit/core/result.h"

namespace fleetfit::core {

/// What the kernel knows of a process.
struct ProcessInfo {
  char state = '?';  ///< 'R' runs, 'S' sleeps, 'Z' has ended and waits to be collected, …
  double cpu_s = 0;  ///< of all its threads
  /// When it began, in ticks since the machine did: with it an id names a process for good, as ids
  /// are used again.
  std::int64_t start_ticks = 0;
};

/// Fails with `not_found` if there is no such process. `proc` is another folder in tests.
Result<ProcessInfo> process_info(std::int64_t pid, const std::filesystem::path& proc = "/proc");

/// The most memory that this process has had at a time, as the system counts it; 0 if it does not
/// tell.
std::int64_t peak_memory_bytes();

/// The memory that all processes have now that the process has started, and those that these have,
/// without the process itself.
std::int64_t memory_bytes_of_children(int pid);

/// The name of this machine.
std::string host_name();

}  // namespace fleetfit::core
