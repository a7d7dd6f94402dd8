#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/progress.h"
#include "fleetfit/store/study_records.h"
#include "fleetfit/tune/tuner.h"

namespace fleetfit::study {

/// What people see while a study is tuned: how many trials have ended, the best so far, the rungs,
/// how long it may still take.
class TuningProgress {
 public:
  /// The clock is borrowed.
  TuningProgress(core::Progress& sink, const core::Clock& clock, std::size_t max_trials);

  void ended(const store::TrialRecord& trial);
  /// A score that is known and keeps the limits.
  void scored(const store::TrialRecord& trial, double score);
  void say(std::string_view text) { task_.message(text); }

  /// Whether it is time to say how it stands.
  bool is_due() const;
  /// Says it; `words` are those of a trial that runs alone, if it says how far it is.
  void look(std::size_t running, const std::vector<tune::Tuner::Rung>& rungs,
            const std::string& words);

  /// What was known at the beginning is no news.
  void loaded();

 private:
  struct Best {
    std::int64_t trial = 0;
    double score = 0;
  };
  std::string time_left() const;

  const core::Clock& clock_;
  core::ProgressTask task_;
  std::size_t max_trials_;
  std::size_t ended_ = 0;
  std::size_t ended_before_ = 0;
  std::chrono::nanoseconds began_;
  std::chrono::nanoseconds last_look_;
  std::optional<Best> best_;
  bool is_loaded_ = false;
  std::string last_words_;  // of the only trial
};

}  // namespace fleetfit::study
