#include "fleetfit/core/memory_use.h"

#include <sys/resource.h>

namespace fleetfit::core {

std::int64_t peak_memory_bytes() {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  constexpr std::int64_t kKibi = 1024;
  return usage.ru_maxrss * kKibi;
}

}  // namespace fleetfit::core
