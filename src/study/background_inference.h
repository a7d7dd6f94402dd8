#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fleetfit/study/tuning.h"

namespace fleetfit::study {

/// Tunes inference in a thread of its own while trials are trained: every network once.
class BackgroundInference {
 public:
  /// A network, or how to get it.
  struct Question {
    std::string key = {};        ///< the values that make the network
    std::string structure = {};  ///< empty: to be found by running `untrained`
    std::filesystem::path model = {};
    std::optional<tune::TrialJob> untrained = std::nullopt;  ///< a run of 0 epochs
  };
  struct Answer {
    std::string key = {};
    std::string structure = {};  ///< empty if it could not be found
    std::filesystem::path model = {};
    Result<std::vector<tune::Inference>> inference;
  };

  /// The tuner is borrowed.
  explicit BackgroundInference(InferenceTuner& tuner);
  BackgroundInference(const BackgroundInference&) = delete;
  BackgroundInference& operator=(const BackgroundInference&) = delete;
  /// Stops the tuning that is at work.
  ~BackgroundInference() = default;

  void ask(Question question);

  /// How many questions have no answer yet.
  std::size_t open() const;

  /// Waits for an answer.
  std::optional<Answer> wait(std::chrono::milliseconds timeout, const std::stop_token& stop);

 private:
  void work(const std::stop_token& stop);
  Answer answer(const Question& question, const std::stop_token& stop) const;

  InferenceTuner& tuner_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Question> questions_;
  std::deque<Answer> answers_;
  std::size_t open_ = 0;
  std::jthread thread_;
};

}  // namespace fleetfit::study
