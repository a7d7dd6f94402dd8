#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

namespace fleetfit::core {

/// Sleeps; false if it was woken by a request to stop.
inline bool sleep_unless_stopped(std::chrono::milliseconds duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any nothing;
  std::unique_lock lock(mutex);
  nothing.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

/// Pauses that double as long as nothing happens, so that waiting costs next to nothing and news
/// is seen soon when there is much.
class GrowingPause {
 public:
  GrowingPause(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest), next_(first) {}

  /// The next pause, with which it grows.
  std::chrono::milliseconds take() { return std::exchange(next_, std::min(next_ * 2, longest_)); }
  std::chrono::milliseconds next() const { return next_; }
  void something_happened() { next_ = first_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_;
};

}  // namespace fleetfit::core
