#include "fleetfit/tune/patience.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

namespace fleetfit::tune {

using std::chrono::milliseconds;

bool sleep_unless_stopped(milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

bool Patience::waited(const Error& error) {
  constexpr milliseconds kLongest{2000};
  if (!waiting_ && say_)
    say_(fmt::format("waiting until the store can be used again: {}", error.message));
  waiting_ = true;
  const auto pause = std::exchange(pause_, std::min(pause_ * 2, kLongest));
  return sleep_unless_stopped(pause, stop_);
}

void Patience::answered() {
  if (waiting_ && say_) say_("the store can be used again");
  waiting_ = false;
  pause_ = milliseconds(100);
}

}  // namespace fleetfit::tune
