#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fleetfit/store/study_records.h"
#include "store/sql/sql_connection.h"

/// Rows of the tables of studies, and the columns that each is read from.
namespace fleetfit::store {

/// Of a study, what changes with its trials.
struct Progress {
  std::int64_t study = 0;
  std::int64_t change = 0;
  TrialCounts counts = {};
};

struct Lead {
  std::int64_t study = 0;
  std::string tuner = {};
  std::optional<Time> until = std::nullopt;
};

struct LevelOfTrial {
  std::int64_t trial = 0;
  LevelRecord level = {};
};

inline constexpr std::string_view kSelectStudies =
    "SELECT name, definition, seed, done, created, tuning_s, tuning_j "
    "FROM studies JOIN study_progress ON study = id";

inline constexpr std::string_view kTrialColumns =
    "number, params, bracket, level, state, reason, structure, model_file, attempts, worker, "
    "lease_until, stop_requested, progress, score, change";

inline constexpr std::string_view kLevelColumns =
    "trial, level, epochs, data_fraction, accuracy, loss, training_s, training_j, metrics, "
    "epoch_values, worker, started, ended";

inline constexpr std::string_view kInferenceColumns =
    "structure, device_fingerprint, question, device, result, failed, elapsed_s, study, found";

Result<StudyRecord> read_study(SqlRow& row);
Result<Progress> read_progress(SqlRow& row);
Result<Lead> read_lead(SqlRow& row);
Result<TrialRecord> read_trial(SqlRow& row);
Result<LevelOfTrial> read_level(SqlRow& row);
Result<InferenceRecord> read_inference(SqlRow& row);

}  // namespace fleetfit::store
