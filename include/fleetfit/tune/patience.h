#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/sleep.h"
#include "fleetfit/store/study_store.h"

namespace fleetfit::tune {

using core::sleep_unless_stopped;

/// Between questions to a store, from 5 ms on. One that wakes those who wait for its news is asked
/// less and less, for what it does not announce, such as leases that run out.
core::GrowingPause pause_between_questions(const store::StudyStore& store);

struct PatienceOptions {
  /// How long the store may be away; absent: for ever.
  std::optional<std::chrono::milliseconds> most = std::nullopt;
  /// Hears that the waiting begins, in place of `say`: of what is an error in the making, also
  /// people hear who want to see no progress.
  std::function<void(std::string_view)> warn = {};
};

/// Keeps asking a store that refuses (a full disk, a lock, a lost connection) until it answers
/// again. Says that it waits, every ten seconds that it still does, and that it goes on. A store
/// that cannot come back is not waited for. Belongs to one thread.
class Patience {
 public:
  Patience(std::function<void(std::string_view)> say, std::stop_token stop,
           PatienceOptions options = {})
      : say_(std::move(say)), stop_(std::move(stop)), options_(std::move(options)) {}

  /// Repeats a call that fails with `io`; gives its last answer when it is to stop, when the store
  /// cannot come back, and when it was away for too long, which the message then says.
  template <class Call>
  auto keep_trying(const Call& call) {
    auto answer = call();
    while (!answer && may_mend(answer.error()) && waited(answer.error())) answer = call();
    if (answer) answered();
    return answer;
  }

 private:
  static bool may_mend(const Error& error);
  bool waited(Error& error);
  void answered();

  std::function<void(std::string_view)> say_;
  std::stop_token stop_;
  PatienceOptions options_;
  core::SystemClock clock_;
  core::GrowingPause pause_{std::chrono::milliseconds(100), std::chrono::milliseconds(2000)};
  std::optional<std::chrono::nanoseconds> began_;  // to wait
  std::chrono::nanoseconds next_words_{0};
};

}  // namespace fleetfit::tune
