#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fleetfit/store/study_store.h"
#include "fleetfit/study/tuning.h"
#include "fleetfit/tune/patience.h"
#include "fleetfit/tune/tuner.h"
#include "study/background_inference.h"
#include "study/progress.h"

namespace fleetfit::study {

/// Decides for one study: gives the tuner what workers have written, and writes what the tuner
/// decides. Everything it knows it has from the store, so that another one can take over at any
/// time. Knows nothing of workers. Belongs to one thread.
class Conductor {
 public:
  struct Options {
    std::size_t ahead = 2;                  ///< so many trials are queued or running at once
    std::vector<std::string> command = {};  ///< that trains; for runs of 0 epochs
    std::filesystem::path folder = {};      ///< of this study
  };

  /// All are borrowed; without a pricing no inference is tuned.
  Conductor(store::StudyStore& store, const tune::Study& study, BackgroundInference* pricing,
            TuningProgress& progress, Options options);

  enum class Step : std::uint8_t { idle, moved, done };

  /// Takes in what has changed, and decides what can be decided. Fails as the store does.
  Result<Step> step();

  /// Waits for news of trials or of inference for a moment.
  void wait(std::chrono::milliseconds timeout, const std::stop_token& stop);

  /// Trials that are running, with who has them.
  std::vector<store::Claim> running() const;

  /// Joules of levels that have ended since it was asked last; nothing if none is known.
  std::optional<double> take_energy();

  std::vector<tune::Tuner::Rung> rungs() const { return tuner_.rungs(); }

 private:
  /// What is remembered of each trial.
  struct Known {
    store::TrialState state = store::TrialState::queued;
    std::string key = {};        ///< the values that make its network
    std::string structure = {};  ///< as far as the trial itself said
    std::string worker = {};
    std::int64_t attempts = 0;
    std::size_t levels = 0;
    std::int64_t level = 0;
    bool is_priced = false;  ///< the tuner knows its inference

    bool is_held() const { return state == store::TrialState::paused && levels == 0; }
  };
  struct Price {
    std::vector<tune::Inference> inference = {};
    std::string problem = {};  ///< why there is none
  };

  bool prices_networks() const;
  const Price* price_of(const Known& known) const;
  std::string structure_of(const Known& known) const;

  Status load();
  Result<bool> follow_changes();
  Status absorb(const store::TrialRecord& record);
  Status absorb_again(std::int64_t trial);
  void learn_structure(const store::TrialRecord& record, const std::string& key);
  Status save_score(const store::TrialRecord& record, const tune::Trial& trial);
  Status enforce(std::int64_t trial);
  Result<bool> end(std::int64_t trial, store::TrialState state, const std::string& reason);

  Result<bool> take_answer();
  Status apply_answer(BackgroundInference::Answer answer);
  Status release(std::int64_t trial);
  void ask_untrained(const std::string& key, const std::string& params);

  Result<Step> decide();
  Result<bool> carry_out(const tune::Decision& decision);
  Result<bool> start(const tune::StartTrial& decision);
  bool must_wait_for_price(const Known& known) const;
  Result<Step> finish();

  store::StudyStore& store_;
  const tune::Study& study_;
  BackgroundInference* pricing_;
  TuningProgress& progress_;
  Options options_;
  tune::Tuner tuner_;
  std::int64_t last_change_ = 0;
  std::vector<Known> trials_;
  std::size_t active_ = 0;  // queued or running, or waiting for a price
  std::set<std::int64_t> running_;
  std::map<std::string, std::string> structures_;  // by key
  std::map<std::string, Price> prices_;            // by structure
  std::set<std::string> asked_;                    // structures, and keys of untrained networks
  std::set<std::string> unknown_untrained_;        // keys for which that found no structure
  std::optional<BackgroundInference::Answer> answer_;
  std::optional<double> energy_;
  bool loaded_ = false;
};

}  // namespace fleetfit::study
