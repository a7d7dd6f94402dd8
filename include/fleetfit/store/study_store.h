#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/study_records.h"

namespace fleetfit::store {

/// Who holds a trial: what a worker shows with each write, so that one that was taken for dead
/// cannot spoil what its successor does.
struct Claim {
  std::string study = {};
  std::int64_t trial = 0;
  std::string worker = {};
  std::int64_t attempt = 0;  ///< TrialRecord::attempts when it was taken
};

/// Whether a worker still has its trial.
enum class Hold : std::uint8_t { held, stop_requested, lost };

/// A level that a worker has ended.
struct LevelEnd {
  Claim claim = {};
  LevelRecord level = {};
  std::string model_file = {};
};

/// A paused trial goes on to a higher level.
struct QueueLevel {
  std::int64_t trial = 0;
  std::int64_t level = 0;
};
/// A trial that is queued or paused ends.
struct EndTrial {
  std::int64_t trial = 0;
  TrialState state = TrialState::stopped;
  std::string reason = {};
};
struct SaveScore {
  std::int64_t trial = 0;
  std::optional<double> score = std::nullopt;
};
/// What a tuner decides of a trial that there is.
using TrialDecision = std::variant<QueueLevel, EndTrial, SaveScore>;

/// Whether trials come with what they had reached at the end of their levels.
enum class LevelDetail : std::uint8_t { none, all };

/// What can be waited for.
enum class News : std::uint8_t {
  queued,  ///< there may be a trial to take, or the study is done
  ended,   ///< a worker has written something
};

/// The part of a Store that keeps studies; the same promises hold. Calls on a study or trial that
/// does not exist fail with `not_found`. Of calls that take many of something, each is one step:
/// all is written, or nothing; and much quicker than one by one.
class StudyStore {
 public:
  virtual ~StudyStore() = default;

  /// Fails with `invalid_input` if there is one of that name.
  virtual Status create_study(const StudyRecord& study) = 0;
  virtual Result<std::optional<StudyRecord>> find_study(std::string_view name) = 0;
  /// By name.
  virtual Result<std::vector<StudyRecord>> list_studies() = 0;
  /// With all of its trials; what was found of inference stays. Says whether there was one.
  virtual Result<bool> remove_study(std::string_view name) = 0;
  /// Adds to the time and energy spent, and says whether it is done.
  virtual Status update_study(std::string_view name, double more_s, std::optional<double> more_j,
                              bool done) = 0;

  /// One tuner at a time decides for a study: takes or renews the lease of `tuner`. False if
  /// another one has it. A lease `until` now gives it back.
  virtual Result<bool> lead_study(std::string_view name, std::string_view tuner, Time now,
                                  Time until) = 0;

  /// New trials, whose numbers must be the next ones of the study. Their states may be any, so that
  /// whole histories can be brought in; `change` does not matter. False, with nothing written, if
  /// somebody else was quicker and the numbers are taken.
  virtual Result<bool> add_trials(std::string_view study, std::span<const TrialRecord> trials) = 0;

  virtual Result<std::optional<TrialRecord>> find_trial(std::string_view study,
                                                        std::int64_t number) = 0;
  /// Those that changed after change number `since` (0: all), in the order of their changes; at
  /// most `limit`. To be repeated with the last one's number to follow a study.
  virtual Result<std::vector<TrialRecord>> list_changes(std::string_view study, std::int64_t since,
                                                        std::size_t limit) = 0;
  /// By number, from `first`.
  virtual Result<std::vector<TrialRecord>> list_trials(std::string_view study, std::int64_t first,
                                                       std::size_t limit, LevelDetail levels) = 0;
  /// Those with the best scores, best first; of equal ones the older. Finished ones come before all
  /// others: a trial that was cut early has cost less, so that its score may look better than it
  /// is. Takes milliseconds however many trials there are.
  virtual Result<std::vector<TrialRecord>> best_trials(std::string_view study,
                                                       std::size_t limit) = 0;
  /// Takes no longer with more trials.
  virtual Result<TrialCounts> count_trials(std::string_view study) = 0;

  /// Gives the worker trials: first those whose lease has run out, which it is to take over from
  /// their checkpoints, then queued ones, lowest numbers first. Fewer than `limit` if there are not
  /// so many. One that is asked to stop keeps `stop_requested`: the worker gives it up at once.
  virtual Result<std::vector<TrialRecord>> claim_trials(std::string_view study,
                                                        std::string_view worker, Time now,
                                                        Time until, std::size_t limit) = 0;
  /// One of them, if there is one.
  Result<std::optional<TrialRecord>> claim_trial(std::string_view study, std::string_view worker,
                                                 Time now, Time until);
  /// The worker lives, and says how far the trial is. Is no change that others follow.
  virtual Result<Hold> renew(const Claim& claim, Time until, std::string_view progress) = 0;
  /// Which network the trial has, as soon as it is known.
  virtual Result<Hold> save_structure(const Claim& claim, std::string_view structure,
                                      std::string_view model_file) = 0;
  /// Levels have ended: their trials are paused, or stopped if that was requested (the answer is
  /// `stop_requested` then). `lost` for a trial that is no longer the worker's; nothing is written
  /// of it. Fails with `invalid_input` if the level is not the one that the trial is in.
  virtual Result<std::vector<Hold>> end_levels(std::span<const LevelEnd> ends) = 0;
  Result<Hold> end_level(const Claim& claim, const LevelRecord& level, std::string_view model_file);
  /// The trial ends as failed or stopped. `lost` as above. An empty reason leaves the one for which
  /// a stop was requested.
  virtual Result<Hold> give_up(const Claim& claim, TrialState state, std::string_view reason) = 0;
  /// Puts it back into the queue as if it had not been taken; if a stop was requested, it is
  /// stopped.
  virtual Result<Hold> give_back(const Claim& claim) = 0;

  /// What a tuner decided. For each: whether it took effect, which it did not if the trial has
  /// another state by now. Fails with `invalid_input` on a level that the trial has had already,
  /// and on an end that is none.
  virtual Result<std::vector<bool>> decide(std::string_view study,
                                           std::span<const TrialDecision> decisions) = 0;
  Result<bool> queue_level(std::string_view study, std::int64_t trial, std::int64_t level);
  Result<bool> end_trial(std::string_view study, std::int64_t trial, TrialState state,
                         std::string_view reason);
  Status save_score(std::string_view study, std::int64_t trial, std::optional<double> score);
  /// Asks the worker that has it to stop. False if it is not running.
  virtual Result<bool> request_stop(std::string_view study, std::int64_t trial,
                                    std::string_view reason) = 0;

  /// Whether `wait_for_news` is woken by what other processes write; otherwise it sleeps.
  virtual bool hears_of_changes() const = 0;
  /// Waits until there may be news of the study since the last call, or the time is over, or `stop`
  /// asks for it. Wakes too often rather than too seldom, and a lost data base says nothing: ask
  /// again in any case. Belongs to one thread for each kind of news.
  virtual void wait_for_news(std::string_view study, News news, std::chrono::milliseconds timeout,
                             const std::stop_token& stop) = 0;

  virtual Result<std::optional<InferenceRecord>> find_inference(std::string_view structure,
                                                                std::string_view fingerprint,
                                                                std::string_view question) = 0;
  /// Adds it, or replaces the one with the same three keys.
  virtual Status save_inference(const InferenceRecord& record) = 0;
  /// All that were found for a study or, if that is empty, for any; newest first.
  virtual Result<std::vector<InferenceRecord>> list_inferences(std::string_view study) = 0;
};

}  // namespace fleetfit::store
