#pragma once

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

/// Between questions to a store, from 5 ms on. One that wakes those who wait for its news is asked
/// less and less, for what it does not announce, such as leases that run out.
core::GrowingPause pause_between_questions(const store::StudyStore& store);

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
  core::GrowingPause pause_{std::chrono::milliseconds(100), std::chrono::milliseconds(2000)};
  bool waiting_ = false;
};

}  // namespace fleetfit::tune
