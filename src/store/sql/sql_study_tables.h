#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/store/study_store.h"
#include "store/sql/sql_connection.h"
#include "store/sql/sql_table.h"

namespace fleetfit::store {

/// The statements on the tables of studies, in the words of a data base.
struct StudySql {
  explicit StudySql(const SqlDialect& dialect);

  std::string find_study;
  std::string list_studies;
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
};

/// Of a study, what changes with its trials.
struct Progress {
  std::int64_t study = 0;
  std::int64_t change = 0;
  TrialCounts counts = {};
};
core::Fields fields_of(const Progress*);

/// Who leads a study.
struct Lead {
  std::int64_t study = 0;
  std::string tuner = {};
  std::optional<Time> until = std::nullopt;
};
core::Fields fields_of(const Lead*);

/// What those wait for who want that news of a study.
std::string topic_of(std::string_view study, News news);

/// Reads and writes a study within a transaction of somebody else. Changes of trials are counted,
/// and the counts are to be saved in the end.
///
/// Who changes trials locks the study's progress first, and then trials: so nobody waits for
/// somebody who waits for him, and changes become visible in the order of their numbers.
class StudyTables {
 public:
  enum class For { reading, changing };
  /// `not_found` if there is no such study. All is borrowed.
  static Result<StudyTables> open(SqlConnection& connection, const StudySql& sql,
                                  std::string_view study, For use);

  std::int64_t id() const { return progress_.study; }
  const TrialCounts& counts() const { return progress_.counts; }

  Status insert(const TrialRecord& trial);
  /// Writes a trial that was read without its levels: those that it has now are new.
  Status update(TrialState before, TrialRecord& trial);

  /// Without its levels. `not_found` if there is none.
  Result<TrialRecord> existing_trial(std::int64_t number);
  /// Those that a worker may take, without their levels.
  Result<std::vector<TrialRecord>> for_workers(Time now, std::size_t limit);
  Result<std::vector<TrialRecord>> with_levels(Result<std::vector<TrialRecord>> trials);

  /// Lets `body`, which may fail, change a claimed trial if it is still held.
  Result<Hold> change_held(const Claim& claim, const std::function<Status(TrialRecord&)>& body);
  /// Those of `ends` after the ones that have their answers, up to the first of another study.
  Status end_levels(std::span<const LevelEnd> ends, std::vector<Hold>& holds);
  /// Those of `decisions` after the ones that have their answers, up to the first of another trial:
  /// it is read and written once.
  Status decide_next_trial(std::span<const TrialDecision> decisions, std::vector<bool>& effects);

  /// Who has made the changes; the tuner waits for those of workers.
  enum class By { tuner, worker };
  /// Keeps the counts and tells those who wait.
  Status save(By by);

 private:
  StudyTables(SqlConnection& connection, const StudySql& sql, std::string_view study,
              const Progress& progress)
      : connection_(connection), sql_(sql), study_(study), progress_(progress), before_(progress) {}

  Status insert_levels(const TrialRecord& trial);

  SqlConnection& connection_;
  const StudySql& sql_;
  std::string_view study_;
  Progress progress_;
  Progress before_;
};

}  // namespace fleetfit::store
