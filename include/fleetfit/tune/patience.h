#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/core/result.h"

namespace fleetfit::tune {

/// Sleeps; false if it was woken by a request to stop.
bool sleep_unless_stopped(std::chrono::milliseconds duration, const std::stop_token& stop);

/// Pauses that grow from 5 to 100 ms as long as nothing happens, so that waiting costs next to
/// nothing and news are seen soon when there are many.
class GrowingPause {
 public:
  std::chrono::milliseconds next() {
    return std::exchange(pause_, std::min(pause_ * 2, std::chrono::milliseconds(100)));
  }
  void something_happened() { pause_ = std::chrono::milliseconds(5); }
  bool is_long() const { return pause_ >= std::chrono::milliseconds(100); }

 private:
  std::chrono::milliseconds pause_{5};
};

/// Keeps asking a store that refuses (a full disk, a lock, a lost connection) until it answers
/// again, and says once that it waits and once that it goes on. Belongs to one thread.
class Patience {
 public:
  Patience(std::function<void(std::string_view)> say, std::stop_token stop)
      : say_(std::move(say)), stop_(std::move(stop)) {}

  /// Repeats a call that fails with `io`; gives its last answer when it is to stop.
  template <class Call>
  auto keep_trying(const Call& call) {
    auto answer = call();
    while (!answer && answer.error().code == ErrorCode::io && waited(answer.error()))
      answer = call();
    if (answer) answered();
    return answer;
  }

 private:
  bool waited(const Error& error);
  void answered();

  std::function<void(std::string_view)> say_;
  std::stop_token stop_;
  std::chrono::milliseconds pause_{100};
  bool waiting_ = false;
};

}  // namespace fleetfit::tune
