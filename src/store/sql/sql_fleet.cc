#include "store/sql/sql_fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "store/check.h"
#include "store/job_transitions.h"
#include "store/sql/sql_fleet_queries.h"
#include "store/sql/sql_job_tables.h"
#include "store/sql/sql_records.h"
#include "store/sql/sql_text.h"
#include "store/sql/sql_values.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;
using Ids = std::vector<std::int64_t>;
using Jobs = std::vector<JobRecord>;

Result<std::int64_t> read_integer(SqlRow& row) { return row.integer(); }

Result<AgentCounts> read_agent_counts(SqlRow& row) {
  const auto all = row.integer();
  const auto online = row.integer();
  return AgentCounts{.all = all, .online = online, .never = all - row.integer()};
}

class SqlFleet final : public FleetStore {
 public:
  explicit SqlFleet(const FleetDatabases& databases)
      : records_(databases.records),
        traffic_(databases.traffic),
        jobs_(databases.traffic.dialect()) {}

  Result<std::int64_t> add_token(const TokenRecord& token) override {
    FLEETFIT_TRY(check(token));
    return transact(records_, Transaction::write,
                    [&](SqlConnection& connection) { return insert_new(connection, token); });
  }
  Result<std::optional<TokenRecord>> find_token(std::string_view hash) override {
    return first(traffic_, read_row<TokenRecord>, find_token_, hash);
  }
  Result<std::vector<TokenRecord>> list_tokens() override {
    return all(read_row<TokenRecord>, list_tokens_);
  }
  Result<bool> revoke_token(std::int64_t id, Time now) override {
    return records_
        .use([&](SqlConnection& connection) {
          return connection.write_counted(
              "UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", to_ms(now), id);
        })
        .map([](std::int64_t count) { return count > 0; });
  }

  Status save_agents(std::span<const AgentRecord> agents) override {
    FLEETFIT_TRY(check_each(agents));
    return transact(traffic_, Transaction::write,
                    [&](SqlConnection& connection) { return save(connection, agents); });
  }
  Result<std::optional<AgentRecord>> find_agent(std::string_view name) override {
    return first(traffic_, read_row<AgentRecord>, find_agent_, name);
  }
  Result<std::vector<AgentRecord>> list_agents(const AgentFilter& filter) override {
    FLEETFIT_TRY(check(filter));
    std::string pattern;
    return list(read_row<AgentRecord>, query_of(filter, pattern));
  }
  Result<AgentCounts> count_agents(Time online_since) override {
    return first(records_, read_agent_counts,
                 "SELECT count(*), count(CASE WHEN last_seen >= ? THEN 1 END), count(last_seen) "
                 "FROM agents",
                 to_ms(online_since))
        .map([](const auto& counts) { return counts.value_or(AgentCounts{}); });
  }
  Result<bool> remove_agent(std::string_view name) override {
    return change_jobs(Transaction::write, [&](JobTables& jobs) -> Result<bool> {
      const auto locked = jobs.lock_agent(name);
      if (!locked && locked.error().code == ErrorCode::not_found) return false;
      FLEETFIT_TRY(locked);
      // One whose lease ends meanwhile runs first and then waits.
      for (const auto state : {JobState::running, JobState::waiting})
        FLEETFIT_TRY(jobs.remove(name, state));
      for (const auto* sql :
           {"DELETE FROM event_sequences WHERE agent = ?", "DELETE FROM agents WHERE name = ?"})
        FLEETFIT_TRY(jobs.connection().write(sql, name));
      return true;
    });
  }

  Result<Ids> add_jobs(std::span<const JobRecord> jobs) override {
    for (const auto& job : jobs) FLEETFIT_TRY(check_new_job(job));
    return change_jobs(Transaction::write,
                       [&](JobTables& tables) { return insert_new(tables, jobs); });
  }
  Result<std::optional<JobRecord>> find_job(std::int64_t id) override {
    return first(traffic_, read_row<JobRecord>, jobs_.find, id);
  }
  Result<Jobs> list_jobs(const JobFilter& filter) override {
    return list(read_row<JobRecord>, query_of(filter));
  }
  // The row without an agent holds the sums.
  Result<JobCounts> count_jobs() override { return count_jobs_of(""); }
  Result<JobCounts> count_jobs_of(std::string_view agent) override {
    return first(traffic_, read_row<JobCounts>, jobs_.counts, agent).map([](const auto& counts) {
      return counts.value_or(JobCounts{});
    });
  }
  Result<Jobs> claim_jobs(std::string_view agent, Time now, Time until, std::size_t most) override {
    return change_jobs(Transaction::write, [&](JobTables& tables) -> Result<Jobs> {
      FLEETFIT_TRY(tables.lock_agent(agent));
      return change_all(tables, tables.waiting(agent, most),
                        [&](JobRecord& job) { claim(job, now, until); });
    });
  }
  // What a heartbeat writes may be forgotten: there is another one soon.
  Result<Ids> heartbeat(std::string_view agent, std::string_view serving,
                        std::span<const Running> running, Time now, Time until) override {
    FLEETFIT_TRY(check_serving(serving));
    return change_jobs(Transaction::casual, [&](JobTables& tables) -> Result<Ids> {
      FLEETFIT_ASSIGN(const auto seen,
                      tables.connection().write_counted(
                          "UPDATE agents SET serving = ?, last_seen = ? WHERE name = ?", serving,
                          to_ms(now), agent));
      if (seen == 0) return no_agent(agent);
      Ids stop;
      for (const auto& one : running) {
        FLEETFIT_ASSIGN(const auto heard,
                        change<Heard>(tables, one.job, Heard::stops, [&](JobRecord& job) {
                          return hear_of(job, agent, one, now, until);
                        }));
        if (heard == Heard::stops) stop.push_back(one.job);
      }
      return stop;
    });
  }
  Result<std::vector<Ended>> end_jobs(std::string_view agent, std::span<const JobEnd> ends,
                                      Time now) override {
    FLEETFIT_TRY(check_each(ends));
    using Answers = std::vector<Ended>;
    return change_jobs(Transaction::write, [&](JobTables& tables) -> Result<Answers> {
      const auto locked = tables.lock_agent(agent);
      // One that was removed has no jobs left that could end.
      if (!locked && locked.error().code != ErrorCode::not_found)
        return tl::unexpected(locked.error());
      Answers answers;
      for (const auto& one : ends) {
        FLEETFIT_ASSIGN(const auto answer,
                        change<Ended>(tables, one.job, Ended::lost,
                                      [&](JobRecord& job) { return end(job, agent, one, now); }));
        answers.push_back(answer);
      }
      return answers;
    });
  }
  Result<bool> cancel_job(std::int64_t id, Time now) override {
    return change_jobs(Transaction::write, [&](JobTables& tables) {
      return change<bool>(tables, id, false, [&](JobRecord& job) { return cancel(job, now); });
    });
  }
  Result<Jobs> take_back_jobs(Time now) override {
    return change_jobs(Transaction::write, [&](JobTables& tables) {
      return change_all(tables, tables.abandoned(now),
                        [&](JobRecord& job) { take_back(job, now); });
    });
  }

  Result<std::size_t> add_events(std::span<const EventRecord> events) override {
    FLEETFIT_TRY(check_each(events));
    return transact(traffic_, Transaction::write,
                    [&](SqlConnection& connection) { return insert_new(connection, events); });
  }
  Result<std::vector<EventRecord>> list_events(const EventFilter& filter) override {
    return list(read_row<EventRecord>, query_of(filter)).map([&](std::vector<EventRecord> events) {
      if (filter.newest) std::ranges::reverse(events);
      return events;
    });
  }
  Result<std::int64_t> newest_event() override {
    return first(traffic_, read_integer, "SELECT last FROM fleet_counters WHERE what = 'events'")
        .map([](const auto& last) { return last.value_or(0); });
  }
  Result<std::int64_t> last_sequence(std::string_view agent) override {
    return first(traffic_, read_integer, find_sequence_, agent).map([](const auto& last) {
      return last.value_or(0);
    });
  }
  Result<std::int64_t> remove_events_before(Time time) override {
    return traffic_.use([&](SqlConnection& connection) {
      return connection.write_counted("DELETE FROM events WHERE time < ?", to_ms(time));
    });
  }

  Status save_file(const FileRecord& file) override {
    FLEETFIT_TRY(check(file));
    return records_.use([&](SqlConnection& connection) { return save(connection, file); });
  }
  Result<std::optional<FileRecord>> find_file(std::string_view hash) override {
    return first(traffic_, read_row<FileRecord>, find_file_, hash);
  }
  Result<std::vector<FileRecord>> list_files(std::size_t limit) override {
    return all(read_row<FileRecord>, list_files_, sql_limit(limit));
  }

  Status add_audit(const AuditRecord& entry) override {
    FLEETFIT_TRY(check(entry));
    return transact(traffic_, Transaction::write, [&](SqlConnection& connection) -> Status {
      FLEETFIT_ASSIGN(const auto id, next_id(connection, "audit"));
      return insert(connection, id, entry);
    });
  }
  Result<std::vector<AuditRecord>> list_audit(std::int64_t before, std::size_t limit) override {
    return before > 0 ? all(read_row<AuditRecord>, list_audit_before_, before, sql_limit(limit))
                      : all(read_row<AuditRecord>, list_audit_, sql_limit(limit));
  }

  Status restore(const FleetRecords& records) override {
    FLEETFIT_TRY(check(records));
    return change_jobs(Transaction::write,
                       [&](JobTables& tables) { return insert_all(tables, records); });
  }

 private:
  template <class Body>
  static std::invoke_result_t<Body, SqlConnection&> transact(SqlDatabase& database,
                                                             Transaction kind, const Body& body) {
    return database.use([&](SqlConnection& connection) {
      return connection.transaction(kind, [&] { return body(connection); });
    });
  }

  // What `body` returns of jobs, whose counts are saved in the end.
  template <class Body>
  std::invoke_result_t<Body, JobTables&> change_jobs(Transaction kind, const Body& body) {
    using Answer = std::invoke_result_t<Body, JobTables&>;
    return transact(traffic_, kind, [&](SqlConnection& connection) -> Answer {
      JobTables tables(connection, jobs_);
      auto answer = body(tables);
      if (!answer) return answer;
      FLEETFIT_TRY(tables.save_counts());
      return answer;
    });
  }

  template <class Record, class... Values>
  static Result<std::optional<Record>> first(SqlDatabase& database, Result<Record> (*read)(SqlRow&),
                                             std::string_view sql, const Values&... values) {
    return database.use(
        [&](SqlConnection& connection) { return connection.first(read, sql, values...); });
  }
  template <class Record, class... Values>
  Result<std::vector<Record>> all(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                  const Values&... values) {
    return records_.use(
        [&](SqlConnection& connection) { return connection.all(read, sql, values...); });
  }
  template <class Record>
  Result<std::vector<Record>> list(Result<Record> (*read)(SqlRow&), const FleetQuery& query) {
    return records_.use([&](SqlConnection& connection) {
      return connection.all(read, query.sql, std::span(query.values));
    });
  }

  // What `body` gives of the job, which it may change; `none` if there is no such job.
  template <class Answer, class Body>
  static Result<Answer> change(JobTables& tables, std::int64_t id, Answer none, const Body& body) {
    FLEETFIT_ASSIGN(const auto found, tables.locked(id));
    if (!found) return none;
    auto job = *found;
    const Answer answer = body(job);
    if (job == *found) return answer;
    return tables.update(found->state, job).map([&] { return answer; });
  }

  template <class Body>
  static Result<Jobs> change_all(JobTables& tables, Result<Jobs> jobs, const Body& body) {
    if (!jobs) return jobs;
    for (auto& job : *jobs) {
      const auto before = job.state;
      body(job);
      FLEETFIT_TRY(tables.update(before, job));
    }
    return jobs;
  }

  // The last of `count` new ids. Nobody else gets any until the transaction ends.
  static Result<std::int64_t> next_id(SqlConnection& connection, std::string_view what,
                                      std::int64_t count = 1) {
    FLEETFIT_ASSIGN(
        const auto last,
        connection.first(read_integer,
                         "UPDATE fleet_counters SET last = last + ? WHERE what = ? RETURNING last",
                         count, what));
    if (!last)
      return fail(
          ErrorCode::invalid_input,
          fmt::format("{}: its table fleet_counters has no row of {}", connection.name(), what));
    return *last;
  }

  static Status raise_counter(SqlConnection& connection, std::string_view what, std::int64_t to) {
    return connection.write("UPDATE fleet_counters SET last = ? WHERE what = ? AND last < ?", to,
                            what, to);
  }

  Result<std::int64_t> insert_new(SqlConnection& connection, const TokenRecord& token) {
    FLEETFIT_ASSIGN(const auto known,
                    connection.first(read_row<TokenRecord>, find_token_, token.hash));
    if (known) return token_exists(token.name);
    auto id = next_id(connection, "tokens");
    if (!id) return id;
    return insert(connection, *id, token).map([&] { return *id; });
  }

  Result<Ids> insert_new(JobTables& tables, std::span<const JobRecord> jobs) {
    std::set<std::string_view> agents;
    for (const auto& job : jobs) agents.insert(job.agent);
    for (const auto agent : agents) FLEETFIT_TRY(tables.lock_agent(agent));
    const auto count = static_cast<std::int64_t>(jobs.size());
    FLEETFIT_ASSIGN(const auto last, next_id(tables.connection(), "jobs", count));
    std::int64_t next = last - count;
    Ids ids;
    for (const auto& job : jobs) {
      FLEETFIT_ASSIGN(const auto known, tables.of_key(job.key));
      ids.push_back(known ? *known : ++next);
      if (known) continue;
      FLEETFIT_TRY(tables.insert(new_job(job, next)));
    }
    return ids;
  }

  // Counters are locked first, so that events are seen in the order of their ids.
  Result<std::size_t> insert_new(SqlConnection& connection, std::span<const EventRecord> events) {
    FLEETFIT_ASSIGN(auto id, next_id(connection, "events", 0));
    std::map<std::string, std::int64_t> sequences;
    std::size_t added = 0;
    for (const auto& event : events) {
      FLEETFIT_ASSIGN(const auto is_new, advance(connection, sequences, event));
      if (!is_new) continue;
      FLEETFIT_TRY(insert(connection, ++id, event));
      ++added;
    }
    FLEETFIT_TRY(save(connection, sequences));
    return raise_counter(connection, "events", id).map([&] { return added; });
  }

  // Whether the event's sequence is above those that are known, in the data base or since.
  Result<bool> advance(SqlConnection& connection, std::map<std::string, std::int64_t>& sequences,
                       const EventRecord& event) const {
    if (event.sequence == 0) return true;
    auto known = sequences.find(event.agent);
    if (known == sequences.end()) {
      FLEETFIT_ASSIGN(const auto last, connection.first(read_integer, find_sequence_, event.agent));
      known = sequences.emplace(event.agent, last.value_or(0)).first;
    }
    if (event.sequence <= known->second) return false;
    known->second = event.sequence;
    return true;
  }

  Status insert_all(JobTables& tables, const FleetRecords& records) {
    auto& connection = tables.connection();
    auto sequences = records.sequences;
    for (const auto& event : records.events)
      if (event.sequence > 0)
        sequences[event.agent] = std::max(sequences[event.agent], event.sequence);
    const auto insert_job = [&](const JobRecord& job) { return tables.insert(job); };
    const auto insert_one = [&](const auto& record) {
      return insert(connection, record.id, record);
    };
    const auto save_file = [&](const FileRecord& file) { return save(connection, file); };
    return insert_each(connection, records.tokens, "tokens", insert_one)
        .and_then([&] { return save(connection, std::span(records.agents)); })
        .and_then([&] { return insert_each(connection, records.jobs, "jobs", insert_job); })
        .and_then([&] { return insert_each(connection, records.events, "events", insert_one); })
        .and_then([&] { return insert_each(connection, records.audit, "audit", insert_one); })
        .and_then([&] { return each(records.files, save_file); })
        .and_then([&] { return save(connection, sequences); });
  }

  template <class Records, class Body>
  static Status each(const Records& records, const Body& body) {
    for (const auto& record : records) FLEETFIT_TRY(body(record));
    return {};
  }
  template <class Records, class Body>
  static Status insert_each(SqlConnection& connection, const Records& records,
                            std::string_view what, const Body& body) {
    std::int64_t last = 0;
    for (const auto& record : records) last = std::max(last, record.id);
    return each(records, body).and_then([&] { return raise_counter(connection, what, last); });
  }

  const std::string& insertion_of(const TokenRecord*) const { return insert_token_; }
  const std::string& insertion_of(const EventRecord*) const { return insert_event_; }
  const std::string& insertion_of(const AuditRecord*) const { return insert_audit_; }

  // A record whose first column is its id.
  template <class Record>
  Status insert(SqlConnection& connection, std::int64_t id, const Record& record) const {
    return connection.write(insertion_of(&record), SqlValues(id).add_record_after(1, record).all());
  }

  // In the order of their names, as others may save some of them at the same time.
  Status save(SqlConnection& connection, std::span<const AgentRecord> agents) const {
    std::vector<const AgentRecord*> sorted;
    for (const auto& agent : agents) sorted.push_back(&agent);
    std::ranges::stable_sort(sorted, {}, [](const AgentRecord* agent) { return agent->name; });
    return each(sorted, [&](const AgentRecord* agent) {
      const auto search = searchable_text(*agent);
      return connection
          .write(save_agent_, agent->name, agent->version, agent->hardware, search, agent->serving,
                 to_ms(agent->created), to_ms(agent->last_seen))
          .and_then([&] { return connection.write(save_probe_, agent->name, agent->probe); });
    });
  }
  Status save(SqlConnection& connection, const FileRecord& file) const {
    return connection.write(save_file_, SqlValues().add_record(file).all());
  }
  Status save(SqlConnection& connection,
              const std::map<std::string, std::int64_t>& sequences) const {
    return each(sequences, [&](const auto& one) {
      return connection.write(save_sequence_, one.first, one.second);
    });
  }

  const std::string insert_token_ = insert_into("tokens", columns_of<TokenRecord>());
  const std::string find_token_ = select<TokenRecord>("tokens WHERE hash = ?");
  const std::string list_tokens_ = select<TokenRecord>("tokens ORDER BY id");
  const std::string save_agent_ =
      "INSERT INTO agents (name, version, hardware, search, serving, created, last_seen) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version, "
      "hardware = excluded.hardware, search = excluded.search, serving = excluded.serving, "
      "last_seen = coalesce(excluded.last_seen, agents.last_seen)";
  const std::string save_probe_ = upsert("agent_probes", "agent", "probe");
  const std::string find_agent_ =
      fmt::format("SELECT {} FROM agents WHERE name = ?", agent_columns({}));
  const std::string insert_event_ = insert_into("events", columns_of<EventRecord>());
  const std::string find_sequence_ = "SELECT sequence FROM event_sequences WHERE agent = ?";
  const std::string save_sequence_ = upsert("event_sequences", "agent", "sequence");
  const std::string save_file_ = upsert("files", columns_of<FileRecord>(), 1);
  const std::string find_file_ = select<FileRecord>("files WHERE hash = ?");
  const std::string list_files_ =
      select<FileRecord>("files ORDER BY created DESC, hash DESC LIMIT ?");
  const std::string insert_audit_ = insert_into("audit", columns_of<AuditRecord>());
  const std::string list_audit_ = select<AuditRecord>("audit ORDER BY id DESC LIMIT ?");
  const std::string list_audit_before_ =
      select<AuditRecord>("audit WHERE id < ? ORDER BY id DESC LIMIT ?");

  SqlDatabase& records_;
  SqlDatabase& traffic_;
  const JobSql jobs_;
};

}  // namespace

std::unique_ptr<FleetStore> make_sql_fleet(const FleetDatabases& databases) {
  return std::make_unique<SqlFleet>(databases);
}

}  // namespace fleetfit::store
