#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"

/// What becomes of a trial by the calls of a StudyStore: the same in all stores. Records and texts
/// have been checked.
namespace fleetfit::store {

/// Whether the trial is still the one that was claimed.
Hold hold_of(const TrialRecord& trial, const Claim& claim);

void take(TrialRecord& trial, std::string_view worker, Time until);
/// Adds the level. Fails with `invalid_input` if it is not the one that the trial is in.
Status end_level(TrialRecord& trial, const LevelEnd& end);
void give_up(TrialRecord& trial, TrialState state, std::string_view reason);
void give_back(TrialRecord& trial);
/// False if it is not running.
bool request_stop(TrialRecord& trial, std::string_view reason);

/// What a decision does to a trial.
enum class Effect : std::uint8_t {
  none,       ///< the trial is in another state by now
  unchanged,  ///< it is so already
  changed,
};
Result<Effect> apply(TrialRecord& trial, const TrialDecision& decision);
std::int64_t trial_of(const TrialDecision& decision);

/// Whether the study may be led by `tuner`, if `holder` had its lead until `held_until`.
bool may_lead(std::string_view tuner, Time now, std::string_view holder,
              std::optional<Time> held_until);

/// Whether their numbers run on from `next`.
bool run_on(std::span<const TrialRecord> trials, std::int64_t next);

/// The trials in a state.
std::int64_t& count_of(TrialCounts& counts, TrialState state);

tl::unexpected<Error> no_study(std::string_view name);
tl::unexpected<Error> no_trial(std::string_view study, std::int64_t number);
tl::unexpected<Error> study_exists(std::string_view name);

}  // namespace fleetfit::store
