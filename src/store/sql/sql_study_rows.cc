#include "store/sql/sql_study_rows.h"

#include <fmt/format.h>

#include "store/sql/sql_values.h"

namespace fleetfit::store {
// Fields are read in the order in which they are written here, that of the columns.

Result<StudyRecord> read_study(SqlRow& row) {
  return StudyRecord{.name = row.text(),
                     .definition = row.text(),
                     .seed = static_cast<std::uint64_t>(row.integer()),
                     .done = row.boolean(),
                     .created = from_ms(row.integer()),
                     .tuning_s = row.number(),
                     .tuning_j = row.optional_number()};
}

Result<Progress> read_progress(SqlRow& row) {
  return Progress{.study = row.integer(),
                  .change = row.integer(),
                  .counts = {.queued = row.integer(),
                             .running = row.integer(),
                             .paused = row.integer(),
                             .finished = row.integer(),
                             .stopped = row.integer(),
                             .failed = row.integer()}};
}

Result<Lead> read_lead(SqlRow& row) {
  return Lead{.study = row.integer(), .tuner = row.text(), .until = read_time(row)};
}

Result<TrialRecord> read_trial(SqlRow& row) {
  TrialRecord trial{.number = row.integer(),
                    .params = row.text(),
                    .bracket = row.integer(),
                    .level = row.integer()};
  const auto state = parse_trial_state(row.text());
  if (!state) return core::within(fmt::format("trial {}", trial.number), state.error());
  trial.state = *state;
  trial.reason = row.text();
  trial.structure = row.text();
  trial.model_file = row.text();
  trial.attempts = row.integer();
  trial.worker = row.text();
  trial.lease_until = read_time(row);
  trial.stop_requested = row.boolean();
  trial.progress = row.text();
  trial.score = row.optional_number();
  trial.change = row.integer();
  return trial;
}

Result<LevelOfTrial> read_level(SqlRow& row) {
  return LevelOfTrial{.trial = row.integer(),
                      .level = {.level = row.integer(),
                                .epochs = row.integer(),
                                .data_fraction = row.number(),
                                .accuracy = row.number(),
                                .loss = row.optional_number(),
                                .training_s = row.number(),
                                .training_j = row.optional_number(),
                                .metrics = row.text(),
                                .epoch_values = row.text(),
                                .worker = row.text(),
                                .started = from_ms(row.integer()),
                                .ended = from_ms(row.integer())}};
}

Result<InferenceRecord> read_inference(SqlRow& row) {
  return InferenceRecord{.structure = row.text(),
                         .device_fingerprint = row.text(),
                         .question = row.text(),
                         .device = row.text(),
                         .result = row.text(),
                         .failed = row.boolean(),
                         .elapsed_s = row.number(),
                         .study = row.text(),
                         .found = from_ms(row.integer())};
}

}  // namespace fleetfit::store
