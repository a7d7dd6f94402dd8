#include "store/check.h"

#include <fmt/format.h>

#include "fleetfit/core/fields.h"

namespace fleetfit::store {
namespace {

constexpr core::Field kReason{.name = "reason"};
constexpr core::Field kModelFile{.name = "model_file"};

std::string place_of_trial(std::int64_t number) { return fmt::format("trial {}", number); }

Status check_end(std::string_view place, TrialState state, std::string_view reason) {
  FLEETFIT_TRY(core::check_text(place, kReason, reason));
  if (state == TrialState::failed && reason.empty())
    return refuse(fmt::format("{}: reason is empty though the trial has failed", place));
  return {};
}

Status check(const LevelRecord& level, std::int64_t trial) {
  return core::check(level, fmt::format("trial {}: level {}", trial, level.level));
}

// Each level once, lowest first, and none above the one that the trial is in.
Status check_levels(const TrialRecord& trial) {
  const auto refused = [&](std::string_view problem) {
    return refuse(fmt::format("trial {}: {}", trial.number, problem));
  };
  std::int64_t above = 0;
  for (const auto& level : trial.levels) {
    FLEETFIT_TRY(check(level, trial.number));
    if (level.level < above) return refused("levels are not in increasing order");
    if (level.level > trial.level) return refused("level is below one that it has ended");
    above = level.level + 1;
  }
  return {};
}

Status check(const QueueLevel& decision) {
  if (decision.level >= 0) return {};
  return refuse(fmt::format("trial {}: level is {}, below zero", decision.trial, decision.level));
}

Status check(const EndTrial& decision) {
  const auto place = place_of_trial(decision.trial);
  if (!has_ended(decision.state))
    return refuse(
        fmt::format("{}: state is {}, which is no end", place, to_string(decision.state)));
  return check_end(place, decision.state, decision.reason);
}

Status check(const SaveScore& decision) {
  if (!decision.score) return {};
  return core::check_number(place_of_trial(decision.trial), {.name = "score"}, *decision.score);
}

}  // namespace

Status check(const DeviceRecord& device) { return core::check(device); }
Status check(const ModelRecord& model) { return core::check(model); }
Status check(const KernelChoiceRecord& choice) { return core::check(choice); }
Status check(const StudyRecord& study) { return core::check(study); }
Status check(const InferenceRecord& inference) { return core::check(inference); }

Status check(const MeasurementRecord& measurement) {
  FLEETFIT_TRY(core::check(measurement));
  const bool is_ok = measurement.status == MeasurementStatus::ok;
  if (!is_ok && measurement.reason.empty())
    return refuse("measurement: reason is empty though the status is not ok");
  if (is_ok && !measurement.latency)
    return refuse("measurement: latency is missing though the status is ok");
  return {};
}

Status check(const TrialRecord& trial) {
  const auto place = place_of_trial(trial.number);
  FLEETFIT_TRY(core::check(trial, place));
  FLEETFIT_TRY(check_end(place, trial.state, trial.reason));
  const bool is_running = trial.state == TrialState::running;
  if (is_running && trial.worker.empty())
    return refuse(fmt::format("{}: worker is empty though the trial is running", place));
  if (trial.lease_until && !is_running)
    return refuse(fmt::format("{}: lease_until is there though the trial is not running", place));
  return check_levels(trial);
}

Status check(const LevelEnd& end) {
  FLEETFIT_TRY(check(end.level, end.claim.trial));
  return core::check_text(place_of_trial(end.claim.trial), kModelFile, end.model_file);
}

Status check(const TrialDecision& decision) {
  return std::visit([](const auto& one) { return check(one); }, decision);
}

Status check_worker(std::string_view worker) {
  return core::check_text("claim", core::Field{.name = "worker"}.key(), worker);
}

Status check_tuner(std::string_view tuner) {
  return core::check_text("lead", core::Field{.name = "tuner"}.key(), tuner);
}

Status check_structure(std::string_view structure, std::string_view model_file) {
  FLEETFIT_TRY(core::check_text("trial", core::Field{.name = "structure"}.key(), structure));
  return core::check_text("trial", kModelFile, model_file);
}

Status check_progress(std::string_view progress) {
  return core::check_text("trial", {.name = "progress"}, progress);
}

Status check_stop(std::string_view reason) { return core::check_text("trial", kReason, reason); }

Status check_end_by_worker(TrialState state, std::string_view reason) {
  if (state != TrialState::failed && state != TrialState::stopped)
    return refuse(fmt::format("trial: state is {}, which a worker cannot say", to_string(state)));
  return check_end("trial", state, reason);
}

Status check_spent(double more_s, std::optional<double> more_j) {
  return core::check(StudyRecord{.name = "study", .tuning_s = more_s, .tuning_j = more_j});
}

}  // namespace fleetfit::store
