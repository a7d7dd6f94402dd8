#include "core/stop_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace fleetfit::core {

StopSignal::StopSignal(const std::stop_token& stop)
    : event_(stop.stop_possible() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1),
      callback_(stop, Raise{event_.get()}) {}

void StopSignal::Raise::operator()() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(event, &one, sizeof one));
}

}  // namespace fleetfit::core
