#include "fleetfit/store/store.h"

#include "fleetfit/store/study_store.h"

namespace fleetfit::store {

Result<std::int64_t> Store::add_measurement(const MeasurementRecord& measurement) {
  return add_measurements(std::span(&measurement, 1)).map([](const auto& ids) {
    return ids.front();
  });
}

Result<std::optional<TrialRecord>> StudyStore::claim_trial(std::string_view study,
                                                           std::string_view worker, Time now,
                                                           Time until) {
  return claim_trials(study, worker, now, until, 1).map([](std::vector<TrialRecord> trials) {
    return trials.empty() ? std::nullopt : std::optional(std::move(trials.front()));
  });
}

Result<Hold> StudyStore::end_level(const Claim& claim, const LevelRecord& level,
                                   std::string_view model_file) {
  const LevelEnd end{.claim = claim, .level = level, .model_file = std::string(model_file)};
  return end_levels(std::span(&end, 1)).map([](const auto& holds) { return holds.front(); });
}

namespace {

Result<bool> decide_one(StudyStore& store, std::string_view study, const TrialDecision& decision) {
  return store.decide(study, std::span(&decision, 1)).map([](const std::vector<bool>& effects) {
    return static_cast<bool>(effects.front());
  });
}

}  // namespace

Result<bool> StudyStore::queue_level(std::string_view study, std::int64_t trial,
                                     std::int64_t level) {
  return decide_one(*this, study, QueueLevel{.trial = trial, .level = level});
}

Result<bool> StudyStore::end_trial(std::string_view study, std::int64_t trial, TrialState state,
                                   std::string_view reason) {
  return decide_one(*this, study,
                    EndTrial{.trial = trial, .state = state, .reason = std::string(reason)});
}

Status StudyStore::save_score(std::string_view study, std::int64_t trial,
                              std::optional<double> score) {
  return decide_one(*this, study, SaveScore{.trial = trial, .score = score}).map([](bool) {});
}

}  // namespace fleetfit::store
