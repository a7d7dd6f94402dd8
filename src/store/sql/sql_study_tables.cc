#include "store/sql/sql_study_tables.h"

#include <fmt/format.h>

#include <unordered_map>

#include "store/sql/sql_records.h"
#include "store/sql/sql_text.h"
#include "store/sql/sql_values.h"
#include "store/trial_transitions.h"

namespace fleetfit::store {
namespace {

/// Of a study, what changes with its trials is in a table of its own.
template <class Record>
std::string select_of_studies(std::string_view rest) {
  return select<Record>(fmt::format("studies JOIN study_progress ON study = id {}", rest));
}

std::string select_trials(std::string_view rest) {
  return select<TrialRecord>(fmt::format("trials {}", rest));
}

std::string select_inferences(std::string_view rest) {
  return select<InferenceRecord>(fmt::format(
      "inferences {} ORDER BY found DESC, structure, device_fingerprint, question", rest));
}

}  // namespace

// Partial indexes are named where the planner cannot know how much shorter they are than the table.
StudySql::StudySql(const SqlDialect& dialect)
    : insert_study(
          "INSERT INTO studies (name, definition, seed, created) VALUES (?, ?, ?, ?) RETURNING id"),
      progress(select_of_studies<Progress>("WHERE name = ?")) {
  const auto index = [&](std::string_view name) {
    return dialect.names_indexes ? fmt::format("INDEXED BY {} ", name) : std::string();
  };
  find_study = select_of_studies<StudyRecord>("WHERE name = ?");
  list_studies = select_of_studies<StudyRecord>("ORDER BY name");
  locked_progress = fmt::format("{}{}", progress, dialect.lock_progress);
  save_progress = update("study_progress", changing_columns_of<Progress>(), "WHERE study = ?");
  lead = select_of_studies<Lead>(fmt::format("WHERE name = ?{}", dialect.lock_progress));
  insert_trial = insert_into("trials", "study, " + columns_of<TrialRecord>().list());
  insert_level = insert_into("levels", "study, " + columns_of<LevelOfTrial>().list());
  update_trial =
      update("trials", changing_columns_of<TrialRecord>(), "WHERE study = ? AND number = ?");
  find_trial = select_trials("WHERE study = ? AND number = ?");
  locked_trial = fmt::format("{}{}", find_trial, dialect.lock);
  list_changes = select_trials("WHERE study = ? AND change > ? ORDER BY change LIMIT ?");
  list_trials = select_trials("WHERE study = ? AND number >= ? ORDER BY number LIMIT ?");
  best_trials = select_trials(index("trials_by_score") +
                              "WHERE study = ? AND score IS NOT NULL "
                              "ORDER BY state <> 'finished', score, number LIMIT ?");
  abandoned_trials = select_trials(
      fmt::format("{}WHERE study = ? AND lease_until <= ? ORDER BY lease_until, number LIMIT ?{}",
                  index("trials_by_lease"), dialect.lock_free_rows));
  queued_trials =
      select_trials(fmt::format("{}WHERE study = ? AND state = 'queued' ORDER BY number LIMIT ?{}",
                                index("trials_in_queue"), dialect.lock_free_rows));
  levels_of_run = select<LevelOfTrial>(
      "levels WHERE study = ? AND trial BETWEEN ? AND ? ORDER BY trial, level");
  find_inference =
      select_inferences("WHERE structure = ? AND device_fingerprint = ? AND question = ?");
  save_inference = upsert("inferences", columns_of<InferenceRecord>(), 3);
  list_inferences = select_inferences("");
  list_inferences_of_study = select_inferences("WHERE study = ?");
}

Result<Progress> StudyTables::progress_of(std::string_view study, For use) {
  FLEETFIT_ASSIGN(
      const auto found,
      connection_.first(read_row<Progress>,
                        use == For::changing ? sql_.locked_progress : sql_.progress, study));
  if (!found) return no_study(study);
  return *found;
}

Status StudyTables::save(const Progress& progress) {
  return connection_.write(sql_.save_progress,
                           SqlValues().add_changing(progress).add(progress.study).all());
}

Status StudyTables::insert(const StudyRecord& study) {
  FLEETFIT_ASSIGN(const auto known,
                  connection_.first(read_row<StudyRecord>, sql_.find_study, study.name));
  if (known) return study_exists(study.name);
  FLEETFIT_ASSIGN(const auto id,
                  connection_.first(read_id, sql_.insert_study, study.name, study.definition,
                                    static_cast<std::int64_t>(study.seed), to_ms(study.created)));
  return connection_.write(
      "INSERT INTO study_progress (study, done, tuning_s, tuning_j, tuner, change, queued, "
      "running, paused, finished, stopped, failed) VALUES (?, ?, ?, ?, '', 0, 0, 0, 0, 0, 0, 0)",
      id.value(), study.done, study.tuning_s, study.tuning_j);
}

Status StudyTables::insert(Progress& progress, const TrialRecord& trial) {
  ++count_of(progress.counts, trial.state);
  SqlValues values(progress.study);
  values.add_record(trial).replace_last(++progress.change);  // the change is the last column
  FLEETFIT_TRY(connection_.write(sql_.insert_trial, values.all()));
  return insert_levels(progress, trial);
}

Status StudyTables::insert_levels(const Progress& progress, const TrialRecord& trial) {
  for (const auto& level : trial.levels)
    FLEETFIT_TRY(connection_.write(
        sql_.insert_level, SqlValues(progress.study, trial.number).add_record(level).all()));
  return {};
}

Status StudyTables::update(Progress& progress, TrialState before, TrialRecord& trial) {
  --count_of(progress.counts, before);
  ++count_of(progress.counts, trial.state);
  trial.change = ++progress.change;
  FLEETFIT_TRY(connection_.write(
      sql_.update_trial,
      SqlValues().add_changing(trial).add(progress.study).add(trial.number).all()));
  return insert_levels(progress, trial);
}

Result<TrialRecord> StudyTables::existing_trial(const Progress& progress, std::string_view study,
                                                std::int64_t number) {
  FLEETFIT_ASSIGN(auto found, connection_.first(read_row<TrialRecord>, sql_.locked_trial,
                                                progress.study, number));
  if (!found) return no_trial(study, number);
  return *std::move(found);
}

Result<std::vector<TrialRecord>> StudyTables::for_workers(const Progress& progress, Time now,
                                                          std::size_t limit) {
  // One that somebody else has locked is just being renewed: its worker lives.
  auto trials = connection_.all(read_row<TrialRecord>, sql_.abandoned_trials, progress.study,
                                to_ms(now), sql_limit(limit));
  if (!trials || trials->size() == limit || progress.counts.queued == 0) return trials;
  auto queued = connection_.all(read_row<TrialRecord>, sql_.queued_trials, progress.study,
                                sql_limit(limit - trials->size()));
  if (!queued) return queued;
  trials->insert(trials->end(), std::make_move_iterator(queued->begin()),
                 std::make_move_iterator(queued->end()));
  return trials;
}

Result<std::vector<TrialRecord>> StudyTables::with_levels(const Progress& progress,
                                                          Result<std::vector<TrialRecord>> trials) {
  if (!trials || trials->empty()) return trials;
  std::vector<std::vector<SqlValue>> keys;
  for (const auto& trial : *trials)
    keys.push_back({sql_value(progress.study), sql_value(trial.number), sql_value(trial.number)});
  FLEETFIT_ASSIGN(auto levels,
                  connection_.all_of_each(read_row<LevelOfTrial>, sql_.levels_of_run, keys));
  give_levels(*trials, std::move(levels));
  return trials;
}

Result<std::vector<TrialRecord>> StudyTables::with_levels_of_run(
    const Progress& progress, Result<std::vector<TrialRecord>> trials) {
  if (!trials || trials->empty()) return trials;
  FLEETFIT_ASSIGN(auto levels,
                  connection_.all(read_row<LevelOfTrial>, sql_.levels_of_run, progress.study,
                                  trials->front().number, trials->back().number));
  give_levels(*trials, std::move(levels));
  return trials;
}

void StudyTables::give_levels(std::vector<TrialRecord>& trials, std::vector<LevelOfTrial> levels) {
  std::unordered_map<std::int64_t, TrialRecord*> by_number;
  for (auto& trial : trials) by_number.emplace(trial.number, &trial);
  for (auto& level : levels)
    if (const auto trial = by_number.find(level.trial); trial != by_number.end())
      trial->second->levels.push_back(std::move(level.level));
}

}  // namespace fleetfit::store
