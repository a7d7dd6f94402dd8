#include "store/check.h"
#include "store/sql/sql_store.h"
#include "store/sql/sql_study_tables.h"
#include "store/trial_transitions.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;
using Trials = std::vector<TrialRecord>;
using For = StudyTables::For;
using By = StudyTables::By;

std::string select_inferences(std::string_view condition) {
  return select<InferenceRecord>("inferences " + std::string(condition) +
                                 " ORDER BY found DESC, structure, device_fingerprint, question");
}

class SqlStudies final : public StudyStore {
 public:
  explicit SqlStudies(SqlDatabase& database) : database_(database), sql_(database.dialect()) {}

  Status create_study(const StudyRecord& study) override {
    FLEETFIT_TRY(check(study));
    return database_.transaction(Transaction::write, [&](SqlConnection& connection) -> Status {
      FLEETFIT_ASSIGN(const auto known, connection.first<StudyRecord>(sql_.find_study, study.name));
      if (known) return study_exists(study.name);
      FLEETFIT_ASSIGN(const auto id, connection.first<std::int64_t>(
                                         "INSERT INTO studies (name, definition, seed, created) "
                                         "VALUES (?, ?, ?, ?) RETURNING id",
                                         study.name, study.definition,
                                         static_cast<std::int64_t>(study.seed), study.created));
      return connection.write(
          "INSERT INTO study_progress (study, done, tuning_s, tuning_j, tuner, change, queued, "
          "running, paused, finished, stopped, failed) VALUES (?, ?, ?, ?, '', 0, 0, 0, 0, 0, 0, "
          "0)",
          id.value(), study.done, study.tuning_s, study.tuning_j);
    });
  }
  Result<std::optional<StudyRecord>> find_study(std::string_view name) override {
    return database_.first<StudyRecord>(sql_.find_study, name);
  }
  Result<std::vector<StudyRecord>> list_studies() override {
    return database_.all<StudyRecord>(sql_.list_studies);
  }
  Result<bool> remove_study(std::string_view name) override {
    return database_.transaction(Transaction::write, [&](SqlConnection& one) -> Result<bool> {
      const auto tables = StudyTables::open(one, sql_, name, For::changing);
      if (!tables && tables.error().code == ErrorCode::not_found) return false;
      FLEETFIT_TRY(tables);
      return one.write_counted("DELETE FROM studies WHERE id = ?", tables->id())
          .map([](std::int64_t count) { return count > 0; });
    });
  }
  Status update_study(std::string_view name, double more_s, std::optional<double> more_j,
                      bool done) override {
    FLEETFIT_TRY(check_spent(more_s, more_j));
    return database_.transaction(Transaction::write, [&](SqlConnection& one) -> Status {
      FLEETFIT_ASSIGN(
          const auto written,
          one.write_counted(
              "UPDATE study_progress SET done = ?, tuning_s = tuning_s + ?, "
              "tuning_j = CASE WHEN ? IS NULL THEN tuning_j ELSE coalesce(tuning_j, 0) + ? END "
              "WHERE study = (SELECT id FROM studies WHERE name = ?)",
              done, more_s, more_j, more_j, name));
      if (written == 0) return no_study(name);
      return done ? one.announce(topic_of(name, News::queued)) : Status{};
    });
  }
  Result<bool> lead_study(std::string_view name, std::string_view tuner, Time now,
                          Time until) override {
    FLEETFIT_TRY(check_tuner(tuner));
    return database_.transaction(Transaction::write, [&](SqlConnection& one) -> Result<bool> {
      FLEETFIT_ASSIGN(const auto lead, one.first<Lead>(sql_.lead, name));
      if (!lead) return no_study(name);
      if (!may_lead(tuner, now, lead->tuner, lead->until)) return false;
      return one
          .write("UPDATE study_progress SET tuner = ?, tuner_until = ? WHERE study = ?", tuner,
                 until, lead->study)
          .map([] { return true; });
    });
  }

  Result<bool> add_trials(std::string_view study, std::span<const TrialRecord> trials) override {
    FLEETFIT_TRY(check_each(trials));
    return change(study, By::tuner, [&](StudyTables& tables) -> Result<bool> {
      if (!run_on(trials, tables.counts().all())) return false;
      for (const auto& trial : trials) FLEETFIT_TRY(tables.insert(trial));
      return true;
    });
  }

  Result<std::optional<TrialRecord>> find_trial(std::string_view study,
                                                std::int64_t number) override {
    return read(study, LevelDetail::all, sql_.find_trial, number).map([](Trials trials) {
      return trials.empty() ? std::nullopt : std::optional(std::move(trials.front()));
    });
  }
  Result<Trials> list_changes(std::string_view study, std::int64_t since,
                              std::size_t limit) override {
    return read(study, LevelDetail::all, sql_.list_changes, since, limit);
  }
  Result<Trials> list_trials(std::string_view study, std::int64_t first, std::size_t limit,
                             LevelDetail levels) override {
    return read(study, levels, sql_.list_trials, first, limit);
  }
  Result<Trials> best_trials(std::string_view study, std::size_t limit) override {
    return read(study, LevelDetail::all, sql_.best_trials, limit);
  }
  Result<TrialCounts> count_trials(std::string_view study) override {
    return database_.use([&](SqlConnection& connection) {
      return StudyTables::open(connection, sql_, study, For::reading)
          .map([](const StudyTables& tables) { return tables.counts(); });
    });
  }

  Result<Trials> claim_trials(std::string_view study, std::string_view worker, Time now, Time until,
                              std::size_t limit) override {
    FLEETFIT_TRY(check_worker(worker));
    return change(study, By::tuner, [&](StudyTables& tables) -> Result<Trials> {
      FLEETFIT_ASSIGN(auto trials, tables.for_workers(now, limit));
      for (auto& trial : trials) {
        const TrialState before = trial.state;
        take(trial, worker, until);
        FLEETFIT_TRY(tables.update(before, trial));
      }
      return tables.with_levels(std::move(trials));
    });
  }
  Result<Hold> renew(const Claim& claim, Time until, std::string_view said) override {
    FLEETFIT_TRY(check_progress(said));
    return database_.transaction(Transaction::casual, [&](SqlConnection& one) -> Result<Hold> {
      FLEETFIT_ASSIGN(auto tables, StudyTables::open(one, sql_, claim.study, For::reading));
      FLEETFIT_ASSIGN(const auto trial, tables.existing_trial(claim.trial));
      const Hold hold = hold_of(trial, claim);
      if (hold == Hold::lost) return hold;
      return one
          .write("UPDATE trials SET lease_until = ?, progress = ? WHERE study = ? AND number = ?",
                 until, said, tables.id(), claim.trial)
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
    FLEETFIT_TRY(check_each(ends));
    using Holds = std::vector<Hold>;
    return database_.transaction(Transaction::write, [&](SqlConnection& one) -> Result<Holds> {
      Holds holds;
      while (holds.size() < ends.size())
        FLEETFIT_TRY(
            change_in(one, ends[holds.size()].claim.study, By::worker,
                      [&](StudyTables& tables) { return tables.end_levels(ends, holds); }));
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
    FLEETFIT_TRY(check_each(decisions));
    using Effects = std::vector<bool>;
    return change(study, By::tuner, [&](StudyTables& tables) -> Result<Effects> {
      Effects effects;
      while (effects.size() < decisions.size())
        FLEETFIT_TRY(tables.decide_next_trial(decisions, effects));
      return effects;
    });
  }
  Result<bool> request_stop(std::string_view study, std::int64_t number,
                            std::string_view reason) override {
    FLEETFIT_TRY(check_stop(reason));
    return change(study, By::tuner, [&](StudyTables& tables) -> Result<bool> {
      FLEETFIT_ASSIGN(auto trial, tables.existing_trial(number));
      if (!store::request_stop(trial, reason)) return false;
      return tables.update(TrialState::running, trial).map([] { return true; });
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
    return database_.first<InferenceRecord>(inferences_.find, structure, fingerprint, question);
  }
  Status save_inference(const InferenceRecord& record) override {
    FLEETFIT_TRY(check(record));
    return database_.write(inferences_.save, record);
  }
  Result<std::vector<InferenceRecord>> list_inferences(std::string_view study) override {
    return study.empty()
               ? database_.all<InferenceRecord>(select_inferences(""))
               : database_.all<InferenceRecord>(select_inferences("WHERE study = ?"), study);
  }

 private:
  // The trials of a query by the study's id and `values`.
  template <class... Values>
  Result<Trials> read(std::string_view study, LevelDetail levels, std::string_view sql,
                      const Values&... values) {
    return database_.transaction(Transaction::read, [&](SqlConnection& one) -> Result<Trials> {
      FLEETFIT_ASSIGN(auto tables, StudyTables::open(one, sql_, study, For::reading));
      auto trials = one.all<TrialRecord>(sql, tables.id(), values...);
      return levels == LevelDetail::none ? trials : tables.with_levels(std::move(trials));
    });
  }

  // Runs in a transaction of somebody else.
  template <class Body>
  std::invoke_result_t<Body, StudyTables&> change_in(SqlConnection& connection,
                                                     std::string_view study, By by,
                                                     const Body& body) {
    FLEETFIT_ASSIGN(auto tables, StudyTables::open(connection, sql_, study, For::changing));
    auto answer = body(tables);
    if (!answer) return answer;
    FLEETFIT_TRY(tables.save(by));
    return answer;
  }

  template <class Body>
  std::invoke_result_t<Body, StudyTables&> change(std::string_view study, By by, const Body& body) {
    return database_.transaction(Transaction::write, [&](SqlConnection& connection) {
      return change_in(connection, study, by, body);
    });
  }

  template <class Body>
  Result<Hold> change_claimed(const Claim& claim, const Body& body) {
    return change(claim.study, By::worker, [&](StudyTables& tables) {
      return tables.change_held(claim, [&](TrialRecord& trial) {
        body(trial);
        return Status{};
      });
    });
  }

  SqlDatabase& database_;
  const StudySql sql_;
  const SqlTable<InferenceRecord> inferences_{"inferences", 3};
};

}  // namespace

std::unique_ptr<StudyStore> make_sql_studies(SqlDatabase& database) {
  return std::make_unique<SqlStudies>(database);
}

}  // namespace fleetfit::store
