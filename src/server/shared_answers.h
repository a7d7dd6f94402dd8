#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/server/http_api.h"

namespace fleetfit::server {

/// Answers that many ask for at once and that are the same for all of them. An answer goes to those
/// alone that had asked before it was begun: nobody is given what was known earlier than the
/// question. Safe to use from many threads.
class SharedAnswers {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  using Compute = std::function<Result<ApiReply>()>;

  /// `since`: the question had begun to come by then; nothing: the answer is computed.
  Result<ApiReply> get(const std::string& question, std::optional<Moment> since,
                       const Compute& compute);

 private:
  struct Answer {
    std::mutex mutex;  // held while it is computed: others wait for it, and need none of their own
    std::optional<Moment> begun = std::nullopt;
    ApiReply reply = {};
  };
  std::shared_ptr<Answer> find(const std::string& question);

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Answer>> answers_;  // of the map and who waits for one
};

}  // namespace fleetfit::server
