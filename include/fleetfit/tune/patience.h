#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/core/result.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/store/study_store.h"

namespace fleetfit::tune {

using core::sleep_unless_stopped;

/// Pauses that grow from 5 ms as long as nothing happens, so that waiting costs next to nothing and
/// news are seen soon when there are many.
class GrowingPause {
 public:
  explicit GrowingPause(std::chrono::milliseconds longest = kLong) : longest_(longest) {}

  std::chrono::milliseconds next() { return std::exchange(pause_, std::min(pause_ * 2, longest_)); }
  void something_happened() { pause_ = std::chrono::milliseconds(5); }
  bool is_long() const { return pause_ >= kLong; }

 private:
  static constexpr std::chrono::milliseconds kLong{100};

  std::chrono::milliseconds longest_;
  std::chrono::milliseconds pause_{5};
};

/// Between questions to a store: one that wakes who waits for its news is asked seldom, for what
/// it does not tell of, as leases that run out.
GrowingPause pause_between_questions(const store::StudyStore& store);

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
