#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/store/study_store.h"
#include "store/sql/sql_connection.h"
#include "store/sql/sql_study_rows.h"

namespace fleetfit::store {

/// The statements on the tables of studies, in the words of a data base.
struct StudySql {
  explicit StudySql(const SqlDialect& dialect);

  std::string find_study;
  std::string list_studies;
  std::string insert_study;
  std::string progress;
  std::string locked_progress;
  std::string save_progress;
  std::string lead;
  std::string insert_trial;
  std::string insert_level;
  std::string update_trial;
  std::string find_trial;
  std::string locked_trial;
  std::string list_changes;
  std::string list_trials;
  std::string best_trials;
  std::string abandoned_trials;
  std::string queued_trials;
  std::string levels_of_run;
  std::string find_inference;
  std::string save_inference;
  std::string list_inferences;
  std::string list_inferences_of_study;
};

/// Reads and writes the tables of studies within a transaction of somebody else. Changes of trials
/// are counted in the Progress, which is to be saved in the end.
///
/// Who changes trials locks the study's progress first, and then trials: so nobody waits for
/// somebody who waits for him, and changes become visible in the order of their numbers.
class StudyTables {
 public:
  /// Both are borrowed.
  StudyTables(SqlConnection& connection, const StudySql& sql)
      : connection_(connection), sql_(sql) {}

  SqlConnection& connection() { return connection_; }

  enum class For { reading, changing };
  Result<Progress> progress_of(std::string_view study, For use);
  Status save(const Progress& progress);

  Status insert(const StudyRecord& study);
  Status insert(Progress& progress, const TrialRecord& trial);
  /// Writes a trial that was read without its levels: those that it has now are new.
  Status update(Progress& progress, TrialState before, TrialRecord& trial);

  /// Without its levels.
  Result<TrialRecord> existing_trial(const Progress& progress, std::string_view study,
                                     std::int64_t number);
  /// Those that a worker may take, without their levels.
  Result<std::vector<TrialRecord>> for_workers(const Progress& progress, Time now,
                                               std::size_t limit);

  /// With their levels, each looked up by its number.
  Result<std::vector<TrialRecord>> with_levels(const Progress& progress,
                                               Result<std::vector<TrialRecord>> trials);
  /// The same of trials whose numbers run on.
  Result<std::vector<TrialRecord>> with_levels_of_run(const Progress& progress,
                                                      Result<std::vector<TrialRecord>> trials);

 private:
  static void give_levels(std::vector<TrialRecord>& trials, std::vector<LevelOfTrial> levels);
  Status insert_levels(const Progress& progress, const TrialRecord& trial);

  SqlConnection& connection_;
  const StudySql& sql_;
};

}  // namespace fleetfit::store
