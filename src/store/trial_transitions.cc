#include "store/trial_transitions.h"

#include <fmt/format.h>

namespace fleetfit::store {
namespace {

void leave(TrialRecord& trial, TrialState state) {
  trial.state = state;
  trial.lease_until.reset();
  trial.stop_requested = false;
  trial.progress.clear();
}

Result<Effect> apply_one(TrialRecord& trial, const QueueLevel& decision) {
  if (trial.state != TrialState::paused) return Effect::none;
  // One that was held back before its first level has not had the level that it is in.
  const bool is_held_back = trial.attempts == 0 && decision.level == trial.level;
  if (decision.level <= trial.level && !is_held_back)
    return fail(ErrorCode::invalid_input, fmt::format("trial {}: level {} cannot follow level {}",
                                                      trial.number, decision.level, trial.level));
  trial.level = decision.level;
  trial.state = TrialState::queued;
  return Effect::changed;
}

Result<Effect> apply_one(TrialRecord& trial, const EndTrial& decision) {
  if (trial.state != TrialState::queued && trial.state != TrialState::paused) return Effect::none;
  trial.reason = decision.reason;
  leave(trial, decision.state);
  return Effect::changed;
}

Result<Effect> apply_one(TrialRecord& trial, const SaveScore& decision) {
  if (trial.score == decision.score) return Effect::unchanged;
  trial.score = decision.score;
  return Effect::changed;
}

}  // namespace

Hold hold_of(const TrialRecord& trial, const Claim& claim) {
  const bool is_held = trial.state == TrialState::running && trial.worker == claim.worker &&
                       trial.attempts == claim.attempt;
  if (!is_held) return Hold::lost;
  return trial.stop_requested ? Hold::stop_requested : Hold::held;
}

void take(TrialRecord& trial, std::string_view worker, Time until) {
  trial.state = TrialState::running;
  trial.worker = worker;
  trial.lease_until = until;
  trial.progress.clear();
  ++trial.attempts;
}

Status end_level(TrialRecord& trial, const LevelEnd& end) {
  if (end.level.level != trial.level)
    return fail(ErrorCode::invalid_input, fmt::format("trial {}: it is in level {}, not in {}",
                                                      trial.number, trial.level, end.level.level));
  trial.levels.push_back(end.level);
  trial.model_file = end.model_file;
  leave(trial, trial.stop_requested ? TrialState::stopped : TrialState::paused);
  return {};
}

void give_up(TrialRecord& trial, TrialState state, std::string_view reason) {
  if (!reason.empty()) trial.reason = reason;
  leave(trial, state);
}

void give_back(TrialRecord& trial) {
  --trial.attempts;
  trial.worker.clear();
  leave(trial, trial.stop_requested ? TrialState::stopped : TrialState::queued);
}

bool request_stop(TrialRecord& trial, std::string_view reason) {
  if (trial.state != TrialState::running) return false;
  trial.stop_requested = true;
  trial.reason = reason;
  return true;
}

Result<Effect> apply(TrialRecord& trial, const TrialDecision& decision) {
  return std::visit([&](const auto& one) { return apply_one(trial, one); }, decision);
}

std::int64_t trial_of(const TrialDecision& decision) {
  return std::visit([](const auto& one) { return one.trial; }, decision);
}

bool may_lead(std::string_view tuner, Time now, std::string_view holder,
              std::optional<Time> held_until) {
  return holder == tuner || !held_until || *held_until <= now;
}

bool run_on(std::span<const TrialRecord> trials, std::int64_t next) {
  for (const auto& trial : trials)
    if (trial.number != next++) return false;
  return true;
}

std::int64_t& count_of(TrialCounts& counts, TrialState state) {
  static constexpr std::int64_t TrialCounts::* kInOrder[] = {
      &TrialCounts::queued,   &TrialCounts::running, &TrialCounts::paused,
      &TrialCounts::finished, &TrialCounts::stopped, &TrialCounts::failed};
  return counts.*kInOrder[static_cast<std::size_t>(state)];
}

tl::unexpected<Error> no_study(std::string_view name) {
  return fail(ErrorCode::not_found, fmt::format("there is no study '{}'", name));
}

tl::unexpected<Error> no_trial(std::string_view study, std::int64_t number) {
  return fail(ErrorCode::not_found, fmt::format("study '{}' has no trial {}", study, number));
}

tl::unexpected<Error> study_exists(std::string_view name) {
  return fail(ErrorCode::invalid_input, fmt::format("there is a study '{}' already", name));
}

}  // namespace fleetfit::store
