#include "core/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "fleetfit/core/sleep.h"

namespace fleetfit::core {

bool sleep_unless_stopped(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

StopSignal::StopSignal(const std::stop_token& stop)
    : event_(stop.stop_possible() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1),
      callback_(stop, Raise{event_.get()}) {}

void StopSignal::Raise::operator()() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(event, &one, sizeof one));
}

}  // namespace fleetfit::core
