#include "store/sql/sql_study_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "store/trial_transitions.h"

namespace fleetfit::store {
namespace {

using core::field;

struct LevelOfTrial {
  std::int64_t trial = 0;
  LevelRecord level = {};
};
core::Fields fields_of(const LevelOfTrial*) {
  static constexpr core::Field kAll[] = {field<&LevelOfTrial::trial>("trial"),
                                         field<&LevelOfTrial::level>("levels").inlined()};
  return {.what = "trial", .all = kAll};
}

/// Of a study, what changes with its trials is in a table of its own.
template <class Record>
std::string select_of_studies(std::string_view rest) {
  return select<Record>(fmt::format("studies JOIN study_progress ON study = id {}", rest));
}

std::string select_trials(std::string_view rest) {
  return select<TrialRecord>(fmt::format("trials {}", rest));
}

}  // namespace

core::Fields fields_of(const Progress*) {
  static constexpr core::Field kAll[] = {field<&Progress::study>("id").constant(),
                                         field<&Progress::change>("change"),
                                         field<&Progress::counts>("counts").inlined()};
  return {.what = "progress", .all = kAll};
}

core::Fields fields_of(const Lead*) {
  static constexpr core::Field kAll[] = {field<&Lead::study>("id"), field<&Lead::tuner>("tuner"),
                                         field<&Lead::until>("tuner_until")};
  return {.what = "lead", .all = kAll};
}

// Partial indexes are named where the planner cannot know how much shorter they are than the table.
StudySql::StudySql(const SqlDialect& dialect)
    : progress(select_of_studies<Progress>("WHERE name = ?")) {
  const auto index = [&](std::string_view name) {
    return dialect.names_indexes ? fmt::format("INDEXED BY {} ", name) : std::string();
  };
  find_study = select_of_studies<StudyRecord>("WHERE name = ?");
  list_studies = select_of_studies<StudyRecord>("ORDER BY name");
  locked_progress = fmt::format("{}{}", progress, dialect.lock_progress);
  save_progress = update("study_progress", changing_columns_of<Progress>(), "WHERE study = ?");
  lead = select_of_studies<Lead>(fmt::format("WHERE name = ?{}", dialect.lock_progress));
  insert_trial = insert_into("trials", columns_of<TrialRecord>().behind({"study"}));
  insert_level = insert_into("levels", columns_of<LevelOfTrial>().behind({"study"}));
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
}

std::string topic_of(std::string_view study, News news) {
  return fmt::format("{} {}", news == News::queued ? "queued" : "ended", study);
}

Result<StudyTables> StudyTables::open(SqlConnection& connection, const StudySql& sql,
                                      std::string_view study, For use) {
  FLEETFIT_ASSIGN(
      const auto found,
      connection.first<Progress>(use == For::changing ? sql.locked_progress : sql.progress, study));
  if (!found) return no_study(study);
  return StudyTables(connection, sql, study, *found);
}

Status StudyTables::save(By by) {
  if (progress_.change == before_.change) return {};
  FLEETFIT_TRY(connection_.write(sql_.save_progress, changing(progress_), progress_.study));
  if (progress_.counts.queued > before_.counts.queued)
    FLEETFIT_TRY(connection_.announce(topic_of(study_, News::queued)));
  return by == By::worker ? connection_.announce(topic_of(study_, News::ended)) : Status{};
}

Status StudyTables::insert(const TrialRecord& trial) {
  ++count_of(progress_.counts, trial.state);
  SqlValues values(progress_.study, trial);
  values.replace_last(++progress_.change);  // the change is the last column
  FLEETFIT_TRY(connection_.write(sql_.insert_trial, values));
  return insert_levels(trial);
}

Status StudyTables::insert_levels(const TrialRecord& trial) {
  for (const auto& level : trial.levels)
    FLEETFIT_TRY(connection_.write(sql_.insert_level, progress_.study, trial.number, level));
  return {};
}

Status StudyTables::update(TrialState before, TrialRecord& trial) {
  --count_of(progress_.counts, before);
  ++count_of(progress_.counts, trial.state);
  trial.change = ++progress_.change;
  FLEETFIT_TRY(
      connection_.write(sql_.update_trial, changing(trial), progress_.study, trial.number));
  return insert_levels(trial);
}

Result<TrialRecord> StudyTables::existing_trial(std::int64_t number) {
  FLEETFIT_ASSIGN(auto found, connection_.first<TrialRecord>(sql_.locked_trial, id(), number));
  if (!found) return no_trial(study_, number);
  return *std::move(found);
}

Result<std::vector<TrialRecord>> StudyTables::for_workers(Time now, std::size_t limit) {
  // One that somebody else has locked is just being renewed: its worker lives.
  auto trials = connection_.all<TrialRecord>(sql_.abandoned_trials, id(), now, limit);
  if (!trials || trials->size() == limit || progress_.counts.queued == 0) return trials;
  FLEETFIT_ASSIGN(auto queued,
                  connection_.all<TrialRecord>(sql_.queued_trials, id(), limit - trials->size()));
  std::ranges::move(queued, std::back_inserter(*trials));
  return trials;
}

Result<std::vector<TrialRecord>> StudyTables::with_levels(Result<std::vector<TrialRecord>> trials) {
  if (!trials || trials->empty()) return trials;
  // One query if their numbers run on, or else one for each, all sent at once.
  std::vector<SqlValues> numbers;
  if (run_on(*trials, trials->front().number)) {
    numbers.emplace_back(id(), trials->front().number, trials->back().number);
  } else {
    for (const auto& trial : *trials) numbers.emplace_back(id(), trial.number, trial.number);
  }
  FLEETFIT_ASSIGN(auto levels, connection_.all_of_each<LevelOfTrial>(sql_.levels_of_run, numbers));
  // They come in the order of the trials.
  auto trial = trials->begin();
  for (auto& level : levels) {
    while (trial->number != level.trial) ++trial;
    trial->levels.push_back(std::move(level.level));
  }
  return trials;
}

Result<Hold> StudyTables::change_held(const Claim& claim,
                                      const std::function<Status(TrialRecord&)>& body) {
  FLEETFIT_ASSIGN(auto trial, existing_trial(claim.trial));
  const Hold hold = hold_of(trial, claim);
  if (hold == Hold::lost) return hold;
  FLEETFIT_TRY(body(trial));
  return update(TrialState::running, trial).map([&] { return hold; });
}

Status StudyTables::end_levels(std::span<const LevelEnd> ends, std::vector<Hold>& holds) {
  while (holds.size() < ends.size() && ends[holds.size()].claim.study == study_) {
    const auto& end = ends[holds.size()];
    FLEETFIT_ASSIGN(const auto hold, change_held(end.claim, [&](TrialRecord& trial) {
                      return store::end_level(trial, end);
                    }));
    holds.push_back(hold);
  }
  return {};
}

Status StudyTables::decide_next_trial(std::span<const TrialDecision> decisions,
                                      std::vector<bool>& effects) {
  const std::int64_t number = trial_of(decisions[effects.size()]);
  FLEETFIT_ASSIGN(auto trial, existing_trial(number));
  const TrialState before = trial.state;
  bool changed = false;
  while (effects.size() < decisions.size() && trial_of(decisions[effects.size()]) == number) {
    FLEETFIT_ASSIGN(const auto effect, apply(trial, decisions[effects.size()]));
    effects.push_back(effect != Effect::none);
    changed = changed || effect == Effect::changed;
  }
  return changed ? update(before, trial) : Status{};
}

}  // namespace fleetfit::store
