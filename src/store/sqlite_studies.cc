#include "store/sqlite_studies.h"

#include <fmt/format.h>

#include "store/check.h"
#include "store/sqlite_study_rows.h"
#include "store/sqlite_values.h"
#include "store/trial_transitions.h"

namespace fleetfit::store {
namespace {

using Transaction = SqliteConnection::Transaction;

std::int64_t as_integer(bool value) { return value ? 1 : 0; }

std::optional<std::int64_t> as_integer(std::optional<Time> time) {
  return time ? std::optional(to_ms(*time)) : std::nullopt;
}

class SqliteStudies final : public StudyStore {
 public:
  SqliteStudies(SqliteConnection& connection, std::mutex& mutex)
      : connection_(connection), mutex_(mutex) {}

  Status create_study(const StudyRecord& study) override {
    if (auto checked = check(study); !checked) return checked;
    return in_transaction(Transaction::write, [&] { return insert(study); });
  }
  Result<std::optional<StudyRecord>> find_study(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return connection_.first(read_study, find_study_, name);
  }
  Result<std::vector<StudyRecord>> list_studies() override {
    const std::scoped_lock lock(mutex_);
    return connection_.all(read_study, list_studies_);
  }
  Result<bool> remove_study(std::string_view name) override {
    const std::scoped_lock lock(mutex_);
    return connection_.write("DELETE FROM studies WHERE name = ?", name).map([&] {
      return connection_.changes() > 0;
    });
  }
  Status update_study(std::string_view name, double more_s, std::optional<double> more_j,
                      bool done) override {
    if (auto checked = check_spent(more_s, more_j); !checked) return checked;
    const std::scoped_lock lock(mutex_);
    auto written = connection_.write(
        "UPDATE study_progress SET done = ?, tuning_s = tuning_s + ?, "
        "tuning_j = CASE WHEN ?3 IS NULL THEN tuning_j ELSE coalesce(tuning_j, 0) + ?3 END "
        "WHERE study = (SELECT id FROM studies WHERE name = ?4)",
        as_integer(done), more_s, more_j, name);
    if (written && connection_.changes() == 0) return no_study(name);
    return written;
  }
  Result<bool> lead_study(std::string_view name, std::string_view tuner, Time now,
                          Time until) override {
    if (auto checked = check_tuner(tuner); !checked) return tl::unexpected(checked.error());
    return in_transaction(Transaction::write, [&]() -> Result<bool> {
      const auto lead = connection_.first(
          read_lead,
          "SELECT id, tuner, tuner_until FROM studies JOIN study_progress ON study = id "
          "WHERE name = ?",
          name);
      if (!lead) return tl::unexpected(lead.error());
      if (!*lead) return no_study(name);
      if (!may_lead(tuner, now, (*lead)->tuner, (*lead)->until)) return false;
      return connection_
          .write("UPDATE study_progress SET tuner = ?, tuner_until = ? WHERE study = ?", tuner,
                 to_ms(until), (*lead)->study)
          .map([] { return true; });
    });
  }

  Result<bool> add_trials(std::string_view study, std::span<const TrialRecord> trials) override {
    for (const auto& trial : trials)
      if (auto checked = check(trial); !checked) return tl::unexpected(checked.error());
    return change_study<bool>(study, [&](Progress& progress) -> Result<bool> {
      if (!run_on(trials, progress.counts.all())) return false;
      for (const auto& trial : trials)
        if (auto done = insert(progress, trial); !done) return tl::unexpected(done.error());
      return true;
    });
  }

  Result<std::optional<TrialRecord>> find_trial(std::string_view study,
                                                std::int64_t number) override {
    using Found = std::optional<TrialRecord>;
    return read_study_part<Found>(study, [&](const Progress& progress) -> Result<Found> {
      auto found = trial_row(progress, number);
      if (!found || !*found) return found;
      auto filled = fill_levels(progress, **found);
      if (!filled) return tl::unexpected(filled.error());
      return found;
    });
  }
  Result<std::vector<TrialRecord>> list_changes(std::string_view study, std::int64_t since,
                                                std::size_t limit) override {
    return read_study_part<std::vector<TrialRecord>>(study, [&](const Progress& progress) {
      return with_levels(progress, connection_.all(read_trial, list_changes_, progress.study, since,
                                                   sql_limit(limit)));
    });
  }
  Result<std::vector<TrialRecord>> list_trials(std::string_view study, std::int64_t first,
                                               std::size_t limit, LevelDetail levels) override {
    using List = std::vector<TrialRecord>;
    return read_study_part<List>(study, [&](const Progress& progress) -> Result<List> {
      auto list =
          connection_.all(read_trial, list_trials_, progress.study, first, sql_limit(limit));
      if (!list || list->empty() || levels == LevelDetail::none) return list;
      auto filled = fill_levels_of_run(progress, *list);
      if (!filled) return tl::unexpected(filled.error());
      return list;
    });
  }
  Result<std::vector<TrialRecord>> best_trials(std::string_view study, std::size_t limit) override {
    return read_study_part<std::vector<TrialRecord>>(study, [&](const Progress& progress) {
      return with_levels(
          progress, connection_.all(read_trial, best_trials_, progress.study, sql_limit(limit)));
    });
  }
  Result<TrialCounts> count_trials(std::string_view study) override {
    const std::scoped_lock lock(mutex_);
    return progress_of(study).map([](const Progress& progress) { return progress.counts; });
  }

  Result<std::vector<TrialRecord>> claim_trials(std::string_view study, std::string_view worker,
                                                Time now, Time until, std::size_t limit) override {
    if (auto checked = check_worker(worker); !checked) return tl::unexpected(checked.error());
    using List = std::vector<TrialRecord>;
    return change_study<List>(study, [&](Progress& progress) -> Result<List> {
      auto trials = for_workers(progress, now, limit);
      if (!trials) return trials;
      for (auto& trial : *trials) {
        const TrialState before = trial.state;
        take(trial, worker, until);
        if (auto done = update(progress, before, trial); !done) return tl::unexpected(done.error());
      }
      return with_levels(progress, std::move(trials));
    });
  }
  Result<Hold> renew(const Claim& claim, Time until) override {
    return in_transaction(Transaction::write, [&]() -> Result<Hold> {
      const auto progress = progress_of(claim.study);
      if (!progress) return tl::unexpected(progress.error());
      const auto trial = existing_trial(*progress, claim.study, claim.trial);
      if (!trial) return tl::unexpected(trial.error());
      const Hold hold = hold_of(*trial, claim);
      if (hold == Hold::lost) return hold;
      return connection_
          .write("UPDATE trials SET lease_until = ? WHERE study = ? AND number = ?", to_ms(until),
                 progress->study, claim.trial)
          .map([&] { return hold; });
    });
  }
  Result<Hold> save_structure(const Claim& claim, std::string_view structure,
                              std::string_view model_file) override {
    if (auto checked = check_structure(structure, model_file); !checked)
      return tl::unexpected(checked.error());
    return change_claimed(claim, [&](TrialRecord& trial) {
      trial.structure = structure;
      trial.model_file = model_file;
      return Status{};
    });
  }
  Result<std::vector<Hold>> end_levels(std::span<const LevelEnd> ends) override {
    for (const auto& end : ends)
      if (auto checked = check(end); !checked) return tl::unexpected(checked.error());
    using Holds = std::vector<Hold>;
    return in_transaction(Transaction::write, [&]() -> Result<Holds> {
      Holds holds;
      while (holds.size() < ends.size())
        if (auto ended = end_levels_of_next_study(ends, holds); !ended)
          return tl::unexpected(std::move(ended.error()));
      return holds;
    });
  }
  Result<Hold> give_up(const Claim& claim, TrialState state, std::string_view reason) override {
    if (auto checked = check_end_by_worker(state, reason); !checked)
      return tl::unexpected(checked.error());
    return change_claimed(claim, [&](TrialRecord& trial) {
      store::give_up(trial, state, reason);
      return Status{};
    });
  }
  Result<Hold> give_back(const Claim& claim) override {
    return change_claimed(claim, [](TrialRecord& trial) {
      store::give_back(trial);
      return Status{};
    });
  }

  Result<std::vector<bool>> decide(std::string_view study,
                                   std::span<const TrialDecision> decisions) override {
    for (const auto& decision : decisions)
      if (auto checked = check(decision); !checked) return tl::unexpected(checked.error());
    using Effects = std::vector<bool>;
    return change_study<Effects>(study, [&](Progress& progress) -> Result<Effects> {
      Effects effects;
      while (effects.size() < decisions.size())
        if (auto decided = decide_next_trial(progress, study, decisions, effects); !decided)
          return tl::unexpected(std::move(decided.error()));
      return effects;
    });
  }
  Result<bool> request_stop(std::string_view study, std::int64_t number,
                            std::string_view reason) override {
    if (auto checked = check_stop(reason); !checked) return tl::unexpected(checked.error());
    return change_study<bool>(study, [&](Progress& progress) -> Result<bool> {
      auto trial = existing_trial(progress, study, number);
      if (!trial) return tl::unexpected(trial.error());
      if (!store::request_stop(*trial, reason)) return false;
      return update(progress, TrialState::running, *trial).map([] { return true; });
    });
  }

  Result<std::optional<InferenceRecord>> find_inference(std::string_view structure,
                                                        std::string_view fingerprint,
                                                        std::string_view question) override {
    const std::scoped_lock lock(mutex_);
    return connection_.first(read_inference, find_inference_, structure, fingerprint, question);
  }
  Status save_inference(const InferenceRecord& record) override {
    if (auto checked = check(record); !checked) return checked;
    const std::scoped_lock lock(mutex_);
    return connection_.write(save_inference_, record.structure, record.device_fingerprint,
                             record.question, record.device, record.result,
                             as_integer(record.failed), record.elapsed_s, record.study,
                             to_ms(record.found));
  }
  Result<std::vector<InferenceRecord>> list_inferences(std::string_view study) override {
    const std::scoped_lock lock(mutex_);
    if (study.empty()) return connection_.all(read_inference, list_inferences_);
    return connection_.all(read_inference, list_inferences_of_study_, study);
  }

 private:
  template <class Body>
  std::invoke_result_t<Body> in_transaction(Transaction kind, const Body& body) {
    const std::scoped_lock lock(mutex_);
    return connection_.transaction(kind, body);
  }

  Result<Progress> progress_of(std::string_view study) {
    const auto found =
        connection_.first(read_progress,
                          "SELECT id, change, queued, running, paused, finished, stopped, failed "
                          "FROM studies JOIN study_progress ON study = id WHERE name = ?",
                          study);
    if (!found) return tl::unexpected(found.error());
    if (!*found) return no_study(study);
    return **found;
  }

  Status save(const Progress& progress) {
    const auto& counts = progress.counts;
    return connection_.write(
        "UPDATE study_progress SET change = ?, queued = ?, running = ?, paused = ?, finished = ?, "
        "stopped = ?, failed = ? WHERE study = ?",
        progress.change, counts.queued, counts.running, counts.paused, counts.finished,
        counts.stopped, counts.failed, progress.study);
  }

  template <class Value, class Body>
  Result<Value> read_study_part(std::string_view study, const Body& body) {
    return in_transaction(Transaction::read, [&]() -> Result<Value> {
      const auto progress = progress_of(study);
      if (!progress) return tl::unexpected(progress.error());
      return body(*progress);
    });
  }

  // Runs in a transaction of somebody else.
  template <class Value, class Body>
  Result<Value> change_study_here(std::string_view study, const Body& body) {
    auto progress = progress_of(study);
    if (!progress) return tl::unexpected(progress.error());
    const std::int64_t before = progress->change;
    auto result = body(*progress);
    if (!result || progress->change == before) return result;
    if (auto saved = save(*progress); !saved) return tl::unexpected(saved.error());
    return result;
  }

  template <class Value, class Body>
  Result<Value> change_study(std::string_view study, const Body& body) {
    return in_transaction(Transaction::write,
                          [&] { return change_study_here<Value>(study, body); });
  }

  // Lets `body` change a claimed trial if it is still held.
  template <class Body>
  Result<Hold> change_held(Progress& progress, const Claim& claim, const Body& body) {
    auto trial = existing_trial(progress, claim.study, claim.trial);
    if (!trial) return tl::unexpected(trial.error());
    const Hold hold = hold_of(*trial, claim);
    if (hold == Hold::lost) return hold;
    if (Status done = body(*trial); !done) return tl::unexpected(done.error());
    return update(progress, TrialState::running, *trial).map([&] { return hold; });
  }

  // Those of `ends` after the ones that have their answers, up to the first of another study.
  Status end_levels_of_next_study(std::span<const LevelEnd> ends, std::vector<Hold>& holds) {
    const std::string& study = ends[holds.size()].claim.study;
    const auto done = change_study_here<bool>(study, [&](Progress& progress) -> Result<bool> {
      while (holds.size() < ends.size() && ends[holds.size()].claim.study == study) {
        const auto& end = ends[holds.size()];
        const auto hold = change_held(
            progress, end.claim, [&](TrialRecord& trial) { return store::end_level(trial, end); });
        if (!hold) return tl::unexpected(hold.error());
        holds.push_back(*hold);
      }
      return true;
    });
    if (!done) return tl::unexpected(done.error());
    return {};
  }

  template <class Body>
  Result<Hold> change_claimed(const Claim& claim, const Body& body) {
    return change_study<Hold>(
        claim.study, [&](Progress& progress) { return change_held(progress, claim, body); });
  }

  Status insert(const StudyRecord& study) {
    const auto known = connection_.first(read_study, find_study_, study.name);
    if (!known) return tl::unexpected(known.error());
    if (*known) return study_exists(study.name);
    auto added = connection_.write(
        "INSERT INTO studies (name, definition, seed, created) VALUES (?, ?, ?, ?)", study.name,
        study.definition, static_cast<std::int64_t>(study.seed), to_ms(study.created));
    if (!added) return added;
    return connection_.write(
        "INSERT INTO study_progress (study, done, tuning_s, tuning_j, tuner, change, queued, "
        "running, paused, finished, stopped, failed) VALUES (?, ?, ?, ?, '', 0, 0, 0, 0, 0, 0, 0)",
        connection_.last_id(), as_integer(study.done), study.tuning_s, study.tuning_j);
  }

  Status insert(Progress& progress, const TrialRecord& trial) {
    ++count_of(progress.counts, trial.state);
    auto added = connection_.write(insert_trial_, progress.study, trial.number, trial.params,
                                   trial.bracket, trial.level, to_string(trial.state), trial.reason,
                                   trial.structure, trial.model_file, trial.attempts, trial.worker,
                                   as_integer(trial.lease_until), as_integer(trial.stop_requested),
                                   trial.score, ++progress.change);
    if (!added) return added;
    return insert_levels(progress, trial);
  }

  Status insert_levels(const Progress& progress, const TrialRecord& trial) {
    for (const auto& level : trial.levels) {
      auto added =
          connection_.write(insert_level_, progress.study, trial.number, level.level, level.epochs,
                            level.data_fraction, level.accuracy, level.loss, level.training_s,
                            level.training_j, level.metrics, level.epoch_values, level.worker,
                            to_ms(level.started), to_ms(level.ended));
      if (!added) return added;
    }
    return {};
  }

  // Writes a trial that was read without its levels: those that it has now are new.
  Status update(Progress& progress, TrialState before, TrialRecord& trial) {
    --count_of(progress.counts, before);
    ++count_of(progress.counts, trial.state);
    trial.change = ++progress.change;
    auto written = connection_.write(
        "UPDATE trials SET level = ?, state = ?, reason = ?, structure = ?, model_file = ?, "
        "attempts = ?, worker = ?, lease_until = ?, stop_requested = ?, score = ?, change = ? "
        "WHERE study = ? AND number = ?",
        trial.level, to_string(trial.state), trial.reason, trial.structure, trial.model_file,
        trial.attempts, trial.worker, as_integer(trial.lease_until),
        as_integer(trial.stop_requested), trial.score, trial.change, progress.study, trial.number);
    if (!written) return written;
    return insert_levels(progress, trial);
  }

  // Those of `decisions` after the ones that have their answers, up to the first of another trial:
  // it is read and written once.
  Status decide_next_trial(Progress& progress, std::string_view study,
                           std::span<const TrialDecision> decisions, std::vector<bool>& effects) {
    const std::int64_t number = trial_of(decisions[effects.size()]);
    auto trial = existing_trial(progress, study, number);
    if (!trial) return tl::unexpected(std::move(trial.error()));
    const TrialState before = trial->state;
    bool changed = false;
    while (effects.size() < decisions.size() && trial_of(decisions[effects.size()]) == number) {
      const auto effect = apply(*trial, decisions[effects.size()]);
      if (!effect) return tl::unexpected(effect.error());
      effects.push_back(*effect != Effect::none);
      changed = changed || *effect == Effect::changed;
    }
    if (!changed) return {};
    return update(progress, before, *trial);
  }

  // Those that a worker may take. The partial indexes are named, as the planner cannot know how
  // much shorter they are than the table.
  Result<std::vector<TrialRecord>> for_workers(const Progress& progress, Time now,
                                               std::size_t limit) {
    auto trials =
        connection_.all(read_trial, list_abandoned_, progress.study, to_ms(now), sql_limit(limit));
    if (!trials || trials->size() == limit) return trials;
    auto queued = connection_.all(read_trial, list_queued_, progress.study,
                                  sql_limit(limit - trials->size()));
    if (!queued) return queued;
    trials->insert(trials->end(), std::make_move_iterator(queued->begin()),
                   std::make_move_iterator(queued->end()));
    return trials;
  }

  // Without its levels, as are those below.
  Result<std::optional<TrialRecord>> trial_row(const Progress& progress, std::int64_t number) {
    return connection_.first(read_trial, find_trial_, progress.study, number);
  }

  Result<TrialRecord> existing_trial(const Progress& progress, std::string_view study,
                                     std::int64_t number) {
    auto found = trial_row(progress, number);
    if (!found) return tl::unexpected(std::move(found.error()));
    if (!*found) return no_trial(study, number);
    return std::move(**found);
  }

  Status fill_levels(const Progress& progress, TrialRecord& trial) {
    auto levels =
        connection_.all(read_level, list_levels_, progress.study, trial.number, trial.number);
    if (!levels) return tl::unexpected(std::move(levels.error()));
    for (auto& level : *levels) trial.levels.push_back(std::move(level.level));
    return {};
  }

  // Of trials whose numbers run on.
  Status fill_levels_of_run(const Progress& progress, std::vector<TrialRecord>& trials) {
    const std::int64_t first = trials.front().number;
    auto levels =
        connection_.all(read_level, list_levels_, progress.study, first, trials.back().number);
    if (!levels) return tl::unexpected(std::move(levels.error()));
    for (auto& level : *levels) {
      const auto index = static_cast<std::size_t>(level.trial - first);
      if (index < trials.size()) trials[index].levels.push_back(std::move(level.level));
    }
    return {};
  }

  Result<std::vector<TrialRecord>> with_levels(const Progress& progress,
                                               Result<std::vector<TrialRecord>> trials) {
    if (!trials) return trials;
    for (auto& trial : *trials)
      if (auto filled = fill_levels(progress, trial); !filled)
        return tl::unexpected(filled.error());
    return trials;
  }

  static std::string select_trials(std::string_view rest) {
    return fmt::format("SELECT {} FROM trials {}", kTrialColumns, rest);
  }
  static std::string select_inferences(std::string_view rest) {
    return fmt::format("SELECT {} FROM inferences {}", kInferenceColumns, rest);
  }

  const std::string find_study_ = fmt::format("{} WHERE name = ?", kSelectStudies);
  const std::string list_studies_ = fmt::format("{} ORDER BY name", kSelectStudies);
  const std::string insert_trial_ = fmt::format(
      "INSERT INTO trials (study, {}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
      "?, ?)",
      kTrialColumns);
  const std::string insert_level_ = fmt::format(
      "INSERT INTO levels (study, {}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      kLevelColumns);
  const std::string find_trial_ = select_trials("WHERE study = ? AND number = ?");
  const std::string list_changes_ =
      select_trials("WHERE study = ? AND change > ? ORDER BY change LIMIT ?");
  const std::string list_trials_ =
      select_trials("WHERE study = ? AND number >= ? ORDER BY number LIMIT ?");
  const std::string best_trials_ = select_trials(
      "INDEXED BY trials_by_score WHERE study = ? AND score IS NOT NULL ORDER BY score, number "
      "LIMIT ?");
  const std::string list_abandoned_ = select_trials(
      "INDEXED BY trials_by_lease WHERE study = ? AND lease_until <= ? "
      "ORDER BY lease_until, number LIMIT ?");
  const std::string list_queued_ = select_trials(
      "INDEXED BY trials_in_queue WHERE study = ? AND state = 'queued' ORDER BY number LIMIT ?");
  const std::string list_levels_ = fmt::format(
      "SELECT {} FROM levels WHERE study = ? AND trial BETWEEN ? AND ? "
      "ORDER BY trial, level",
      kLevelColumns);
  const std::string find_inference_ =
      select_inferences("WHERE structure = ? AND device_fingerprint = ? AND question = ?");
  const std::string list_inferences_ =
      select_inferences("ORDER BY found DESC, structure, device_fingerprint, question");
  const std::string list_inferences_of_study_ = select_inferences(
      "WHERE study = ? ORDER BY found DESC, structure, device_fingerprint, question");
  const std::string save_inference_ =
      fmt::format("INSERT OR REPLACE INTO inferences ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  kInferenceColumns);

  SqliteConnection& connection_;
  std::mutex& mutex_;
};

}  // namespace

std::unique_ptr<StudyStore> make_sqlite_studies(SqliteConnection& connection, std::mutex& mutex) {
  return std::make_unique<SqliteStudies>(connection, mutex);
}

}  // namespace fleetfit::store
