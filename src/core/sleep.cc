#include "fleetfit/core/sleep.h"

#include <condition_variable>
#include <mutex>

namespace fleetfit::core {

bool sleep_unless_stopped(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace fleetfit::core
