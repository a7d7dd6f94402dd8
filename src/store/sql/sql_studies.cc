#include "store/sql/sql_studies.h"

#include <fmt/format.h>

#include "store/check.h"
#include "store/sql/sql_records.h"
#include "store/sql/sql_study_tables.h"
#include "store/sql/sql_values.h"
#include "store/trial_transitions.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;
using Trials = std::vector<TrialRecord>;
using For = StudyTables::For;

std::string topic_of(std::string_view study, News news) {
  return fmt::format("{} {}", news == News::queued ? "queued" : "ended", study);
}

class SqlStudies final : public StudyStore {
 public:
  explicit SqlStudies(SqlDatabase& database) : database_(database), sql_(database.dialect()) {}

  Status create_study(const StudyRecord& study) override {
    FLEETFIT_TRY(check(study));
    return in_transaction(Transaction::write,
                          [&](StudyTables& tables) { return tables.insert(study); });
  }
  Result<std::optional<StudyRecord>> find_study(std::string_view name) override {
    return database_.use([&](SqlConnection& connection) {
      return connection.first(read_row<StudyRecord>, sql_.find_study, name);
    });
  }
  Result<std::vector<StudyRecord>> list_studies() override {
    return database_.use([&](SqlConnection& connection) {
      return connection.all(read_row<StudyRecord>, sql_.list_studies);
    });
  }
  Result<bool> remove_study(std::string_view name) override {
    return in_transaction(Transaction::write, [&](StudyTables& tables) -> Result<bool> {
      const auto progress = tables.progress_of(name, For::changing);
      if (!progress && progress.error().code == ErrorCode::not_found) return false;
      FLEETFIT_TRY(progress);
      return tables.connection()
          .write_counted("DELETE FROM studies WHERE id = ?", progress->study)
          .map([](std::int64_t count) { return count > 0; });
    });
  }
  Status update_study(std::string_view name, double more_s, std::optional<double> more_j,
                      bool done) override {
    FLEETFIT_TRY(check_spent(more_s, more_j));
    return in_transaction(Transaction::write, [&](StudyTables& tables) -> Status {
      FLEETFIT_ASSIGN(
          const auto written,
          tables.connection().write_counted(
              "UPDATE study_progress SET done = ?, tuning_s = tuning_s + ?, "
              "tuning_j = CASE WHEN ? IS NULL THEN tuning_j ELSE coalesce(tuning_j, 0) + ? END "
              "WHERE study = (SELECT id FROM studies WHERE name = ?)",
              done, more_s, more_j, more_j, name));
      if (written == 0) return no_study(name);
      return done ? tables.connection().announce(topic_of(name, News::queued)) : Status{};
    });
  }
  Result<bool> lead_study(std::string_view name, std::string_view tuner, Time now,
                          Time until) override {
    FLEETFIT_TRY(check_tuner(tuner));
    return in_transaction(Transaction::write, [&](StudyTables& tables) -> Result<bool> {
      FLEETFIT_ASSIGN(const auto lead, tables.connection().first(read_row<Lead>, sql_.lead, name));
      if (!lead) return no_study(name);
      if (!may_lead(tuner, now, lead->tuner, lead->until)) return false;
      return tables.connection()
          .write("UPDATE study_progress SET tuner = ?, tuner_until = ? WHERE study = ?", tuner,
                 to_ms(until), lead->study)
          .map([] { return true; });
    });
  }

  Result<bool> add_trials(std::string_view study, std::span<const TrialRecord> trials) override {
    for (const auto& trial : trials) FLEETFIT_TRY(check(trial));
    return change_study<bool>(study, By::tuner,
                              [&](StudyTables& tables, Progress& progress) -> Result<bool> {
                                if (!run_on(trials, progress.counts.all())) return false;
                                for (const auto& trial : trials)
                                  FLEETFIT_TRY(tables.insert(progress, trial));
                                return true;
                              });
  }

  Result<std::optional<TrialRecord>> find_trial(std::string_view study,
                                                std::int64_t number) override {
    const auto find = [&](StudyTables& tables, const Progress& progress) {
      return tables.with_levels(
          progress,
          tables.connection().all(read_row<TrialRecord>, sql_.find_trial, progress.study, number));
    };
    return read_trials(study, find).map([](Trials trials) {
      return trials.empty() ? std::nullopt : std::optional(std::move(trials.front()));
    });
  }
  Result<Trials> list_changes(std::string_view study, std::int64_t since,
                              std::size_t limit) override {
    return read_trials(study, [&](StudyTables& tables, const Progress& progress) {
      return tables.with_levels(progress,
                                tables.connection().all(read_row<TrialRecord>, sql_.list_changes,
                                                        progress.study, since, sql_limit(limit)));
    });
  }
  Result<Trials> list_trials(std::string_view study, std::int64_t first, std::size_t limit,
                             LevelDetail levels) override {
    return read_trials(study, [&](StudyTables& tables, const Progress& progress) {
      auto list = tables.connection().all(read_row<TrialRecord>, sql_.list_trials, progress.study,
                                          first, sql_limit(limit));
      return levels == LevelDetail::none ? list
                                         : tables.with_levels_of_run(progress, std::move(list));
    });
  }
  Result<Trials> best_trials(std::string_view study, std::size_t limit) override {
    return read_trials(study, [&](StudyTables& tables, const Progress& progress) {
      return tables.with_levels(
          progress, tables.connection().all(read_row<TrialRecord>, sql_.best_trials, progress.study,
                                            sql_limit(limit)));
    });
  }
  Result<TrialCounts> count_trials(std::string_view study) override {
    return database_
        .use([&](SqlConnection& connection) {
          return StudyTables(connection, sql_).progress_of(study, For::reading);
        })
        .map([](const Progress& progress) { return progress.counts; });
  }

  Result<Trials> claim_trials(std::string_view study, std::string_view worker, Time now, Time until,
                              std::size_t limit) override {
    FLEETFIT_TRY(check_worker(worker));
    return change_study<Trials>(study, By::tuner,
                                [&](StudyTables& tables, Progress& progress) -> Result<Trials> {
                                  auto trials = tables.for_workers(progress, now, limit);
                                  if (!trials) return trials;
                                  for (auto& trial : *trials) {
                                    const TrialState before = trial.state;
                                    take(trial, worker, until);
                                    FLEETFIT_TRY(tables.update(progress, before, trial));
                                  }
                                  return tables.with_levels(progress, std::move(trials));
                                });
  }
  Result<Hold> renew(const Claim& claim, Time until, std::string_view said) override {
    FLEETFIT_TRY(check_progress(said));
    return in_transaction(Transaction::casual, [&](StudyTables& tables) -> Result<Hold> {
      FLEETFIT_ASSIGN(const auto progress, tables.progress_of(claim.study, For::reading));
      FLEETFIT_ASSIGN(const auto trial, tables.existing_trial(progress, claim.study, claim.trial));
      const Hold hold = hold_of(trial, claim);
      if (hold == Hold::lost) return hold;
      return tables.connection()
          .write("UPDATE trials SET lease_until = ?, progress = ? WHERE study = ? AND number = ?",
                 to_ms(until), said, progress.study, claim.trial)
          .map([&] { return hold; });
    });
  }
  Result<Hold> save_structure(const Claim& claim, std::string_view structure,
                              std::string_view model_file) override {
    FLEETFIT_TRY(check_structure(structure, model_file));
    return change_claimed(claim, [&](TrialRecord& trial) {
      trial.structure = structure;
      trial.model_file = model_file;
    });
  }
  Result<std::vector<Hold>> end_levels(std::span<const LevelEnd> ends) override {
    for (const auto& end : ends) FLEETFIT_TRY(check(end));
    using Holds = std::vector<Hold>;
    return in_transaction(Transaction::write, [&](StudyTables& tables) -> Result<Holds> {
      Holds holds;
      while (holds.size() < ends.size())
        FLEETFIT_TRY(end_levels_of_next_study(tables, ends, holds));
      return holds;
    });
  }
  Result<Hold> give_up(const Claim& claim, TrialState state, std::string_view reason) override {
    FLEETFIT_TRY(check_end_by_worker(state, reason));
    return change_claimed(claim, [&](TrialRecord& trial) { store::give_up(trial, state, reason); });
  }
  Result<Hold> give_back(const Claim& claim) override {
    return change_claimed(claim, [](TrialRecord& trial) { store::give_back(trial); });
  }

  Result<std::vector<bool>> decide(std::string_view study,
                                   std::span<const TrialDecision> decisions) override {
    for (const auto& decision : decisions) FLEETFIT_TRY(check(decision));
    using Effects = std::vector<bool>;
    return change_study<Effects>(
        study, By::tuner, [&](StudyTables& tables, Progress& progress) -> Result<Effects> {
          Effects effects;
          while (effects.size() < decisions.size())
            FLEETFIT_TRY(decide_next_trial(tables, progress, study, decisions, effects));
          return effects;
        });
  }
  Result<bool> request_stop(std::string_view study, std::int64_t number,
                            std::string_view reason) override {
    FLEETFIT_TRY(check_stop(reason));
    return change_study<bool>(
        study, By::tuner, [&](StudyTables& tables, Progress& progress) -> Result<bool> {
          FLEETFIT_ASSIGN(auto trial, tables.existing_trial(progress, study, number));
          if (!store::request_stop(trial, reason)) return false;
          return tables.update(progress, TrialState::running, trial).map([] { return true; });
        });
  }

  bool hears_of_changes() const override { return database_.announces(); }
  void wait_for_news(std::string_view study, News news, std::chrono::milliseconds timeout,
                     const std::stop_token& stop) override {
    database_.wait_for(topic_of(study, news), timeout, stop);
  }

  Result<std::optional<InferenceRecord>> find_inference(std::string_view structure,
                                                        std::string_view fingerprint,
                                                        std::string_view question) override {
    return database_.use([&](SqlConnection& connection) {
      return connection.first(read_row<InferenceRecord>, sql_.find_inference, structure,
                              fingerprint, question);
    });
  }
  Status save_inference(const InferenceRecord& record) override {
    FLEETFIT_TRY(check(record));
    return database_.use([&](SqlConnection& connection) {
      return connection.write(sql_.save_inference, SqlValues().add_record(record).all());
    });
  }
  Result<std::vector<InferenceRecord>> list_inferences(std::string_view study) override {
    return database_.use([&](SqlConnection& connection) {
      return study.empty()
                 ? connection.all(read_row<InferenceRecord>, sql_.list_inferences)
                 : connection.all(read_row<InferenceRecord>, sql_.list_inferences_of_study, study);
    });
  }

 private:
  /// Who makes a change; the tuner waits for those of workers.
  enum class By { tuner, worker };

  template <class Body>
  std::invoke_result_t<Body, StudyTables&> in_transaction(Transaction kind, const Body& body) {
    return database_.use([&](SqlConnection& connection) {
      StudyTables tables(connection, sql_);
      return connection.transaction(kind, [&] { return body(tables); });
    });
  }

  template <class Body>
  Result<Trials> read_trials(std::string_view study, const Body& body) {
    return in_transaction(Transaction::read, [&](StudyTables& tables) -> Result<Trials> {
      FLEETFIT_ASSIGN(const auto progress, tables.progress_of(study, For::reading));
      return body(tables, progress);
    });
  }

  // Runs in a transaction of somebody else.
  template <class Value, class Body>
  Result<Value> change_study_here(StudyTables& tables, std::string_view study, By by,
                                  const Body& body) {
    FLEETFIT_ASSIGN(auto progress, tables.progress_of(study, For::changing));
    const Progress before = progress;
    auto result = body(tables, progress);
    if (!result || progress.change == before.change) return result;
    FLEETFIT_TRY(tables.save(progress));
    auto& connection = tables.connection();
    if (progress.counts.queued > before.counts.queued)
      FLEETFIT_TRY(connection.announce(topic_of(study, News::queued)));
    if (by == By::worker) FLEETFIT_TRY(connection.announce(topic_of(study, News::ended)));
    return result;
  }

  template <class Value, class Body>
  Result<Value> change_study(std::string_view study, By by, const Body& body) {
    return in_transaction(Transaction::write, [&](StudyTables& tables) {
      return change_study_here<Value>(tables, study, by, body);
    });
  }

  // Lets `body`, which may fail, change a claimed trial if it is still held.
  template <class Body>
  static Result<Hold> change_held(StudyTables& tables, Progress& progress, const Claim& claim,
                                  const Body& body) {
    FLEETFIT_ASSIGN(auto trial, tables.existing_trial(progress, claim.study, claim.trial));
    const Hold hold = hold_of(trial, claim);
    if (hold == Hold::lost) return hold;
    if (Status done = body(trial); !done) return tl::unexpected(done.error());
    return tables.update(progress, TrialState::running, trial).map([&] { return hold; });
  }

  template <class Body>
  Result<Hold> change_claimed(const Claim& claim, const Body& body) {
    return change_study<Hold>(
        claim.study, By::worker, [&](StudyTables& tables, Progress& progress) {
          return change_held(tables, progress, claim, [&](TrialRecord& trial) {
            body(trial);
            return Status{};
          });
        });
  }

  // Those of `ends` after the ones that have their answers, up to the first of another study.
  Status end_levels_of_next_study(StudyTables& tables, std::span<const LevelEnd> ends,
                                  std::vector<Hold>& holds) {
    const std::string& study = ends[holds.size()].claim.study;
    const auto end_all = [&](StudyTables& of_study, Progress& progress) -> Result<bool> {
      while (holds.size() < ends.size() && ends[holds.size()].claim.study == study) {
        const auto& end = ends[holds.size()];
        FLEETFIT_ASSIGN(const auto hold,
                        change_held(of_study, progress, end.claim, [&](TrialRecord& trial) {
                          return store::end_level(trial, end);
                        }));
        holds.push_back(hold);
      }
      return true;
    };
    FLEETFIT_TRY(change_study_here<bool>(tables, study, By::worker, end_all));
    return {};
  }

  // Those of `decisions` after the ones that have their answers, up to the first of another trial:
  // it is read and written once.
  static Status decide_next_trial(StudyTables& tables, Progress& progress, std::string_view study,
                                  std::span<const TrialDecision> decisions,
                                  std::vector<bool>& effects) {
    const std::int64_t number = trial_of(decisions[effects.size()]);
    FLEETFIT_ASSIGN(auto trial, tables.existing_trial(progress, study, number));
    const TrialState before = trial.state;
    bool changed = false;
    while (effects.size() < decisions.size() && trial_of(decisions[effects.size()]) == number) {
      FLEETFIT_ASSIGN(const auto effect, apply(trial, decisions[effects.size()]));
      effects.push_back(effect != Effect::none);
      changed = changed || effect == Effect::changed;
    }
    if (!changed) return {};
    return tables.update(progress, before, trial);
  }

  SqlDatabase& database_;
  const StudySql sql_;
};

}  // namespace

std::unique_ptr<StudyStore> make_sql_studies(SqlDatabase& database) {
  return std::make_unique<SqlStudies>(database);
}

}  // namespace fleetfit::store
