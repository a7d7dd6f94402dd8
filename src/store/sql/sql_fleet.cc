#include <fmt/format.h>

#include <algorithm>

#include "store/check.h"
#include "store/job_transitions.h"
#include "store/sql/sql_fleet_tables.h"
#include "store/sql/sql_store.h"

namespace fleetfit::store {
namespace {

using Transaction = SqlConnection::Transaction;
using Ids = std::vector<std::int64_t>;
using Jobs = std::vector<JobRecord>;

// What SQL's LIKE finds a text by, wherever it stands.
std::string pattern_of(std::string_view query) {
  std::string pattern = "%";
  for (const char c : searchable_text(query)) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "%";
}

std::string select_agents(const AgentFilter& filter, std::string_view condition) {
  const auto probe = filter.probes ? "(SELECT probe FROM agent_probes WHERE agent = name)" : "'{}'";
  return fmt::format("SELECT {} FROM agents WHERE {}",
                     columns_of<AgentRecord>().list({{"probe", probe}}), condition);
}

// The pattern is borrowed.
SqlQuery query_of(const AgentFilter& filter, const std::string& pattern) {
  SqlQuery query{.sql = select_agents(filter, "name > ?"), .values = SqlValues(filter.after)};
  if (!filter.query.empty()) query.restrict_by(R"(search LIKE ? ESCAPE '\')", pattern);
  query.restrict_by("last_seen >= ?", filter.seen_since);
  query.restrict_by("last_seen < ?", filter.seen_before);
  if (filter.never_seen) query.sql += " AND last_seen IS NULL";
  query.order_by("name", filter.limit);
  return query;
}

SqlQuery query_of(const EventFilter& filter) {
  SqlQuery query{.sql = select<EventRecord>("events WHERE id > ?"),
                 .values = SqlValues(filter.after)};
  query.restrict_by("agent = ?", filter.agent);
  query.restrict_by("kind = ?", filter.kind);
  query.restrict_by("job = ?", filter.job);
  query.order_by(filter.newest ? "id DESC" : "id", filter.limit);
  return query;
}

/// What is counted, in the order of the columns.
struct AgentTotals {
  std::int64_t all = 0;
  std::int64_t online = 0;
  std::int64_t seen = 0;
};
core::Fields fields_of(const AgentTotals*) {
  using core::field;
  static constexpr core::Field kAll[] = {field<&AgentTotals::all>("all"),
                                         field<&AgentTotals::online>("online"),
                                         field<&AgentTotals::seen>("seen")};
  return {.what = "totals", .all = kAll};
}

class SqlFleet final : public FleetStore {
 public:
  explicit SqlFleet(const FleetDatabases& databases)
      : records_(databases.records),
        traffic_(databases.traffic),
        sql_(databases.traffic.dialect()) {}

  Result<std::int64_t> add_token(const TokenRecord& token) override {
    FLEETFIT_TRY(check(token));
    return change(records_, Transaction::write,
                  [&](FleetTables& tables) { return tables.add(token); });
  }
  Result<std::optional<TokenRecord>> find_token(std::string_view hash) override {
    return traffic_.first<TokenRecord>(sql_.find_token, hash);
  }
  Result<std::vector<TokenRecord>> list_tokens() override {
    return records_.all<TokenRecord>(sql_.tokens.select("ORDER BY id"));
  }
  Result<bool> revoke_token(std::int64_t id, Time now) override {
    return records_
        .write_counted("UPDATE tokens SET revoked = ? WHERE id = ? AND revoked IS NULL", now, id)
        .map([](std::int64_t count) { return count > 0; });
  }

  Status save_agents(std::span<const AgentRecord> agents) override {
    FLEETFIT_TRY(check_each(agents));
    return change(traffic_, Transaction::write,
                  [&](FleetTables& tables) { return tables.save(agents); });
  }
  Result<std::optional<AgentRecord>> find_agent(std::string_view name) override {
    return traffic_.first<AgentRecord>(find_agent_, name);
  }
  Result<std::vector<AgentRecord>> list_agents(const AgentFilter& filter) override {
    FLEETFIT_TRY(check(filter));
    const auto pattern = pattern_of(filter.query);
    return list<AgentRecord>(query_of(filter, pattern));
  }
  Result<AgentCounts> count_agents(Time online_since) override {
    return records_
        .first<AgentTotals>(
            "SELECT count(*), count(CASE WHEN last_seen >= ? THEN 1 END), count(last_seen) "
            "FROM agents",
            online_since)
        .map([](const auto& found) {
          const auto totals = found.value_or(AgentTotals{});
          return AgentCounts{totals.all, totals.online, totals.all - totals.seen};
        });
  }
  Result<std::int64_t> count_agents_of(std::int64_t token) override {
    return traffic_.first<std::int64_t>("SELECT count(*) FROM agents WHERE token = ?", token)
        .map([](const auto& found) { return found.value_or(0); });
  }
  Result<bool> remove_agent(std::string_view name) override {
    return change(traffic_, Transaction::write, [&](FleetTables& tables) -> Result<bool> {
      const auto locked = tables.jobs.lock_agent(name);
      if (!locked && locked.error().code == ErrorCode::not_found) return false;
      FLEETFIT_TRY(locked);
      // One whose lease ends meanwhile runs first and then waits.
      for (const auto state : {JobState::running, JobState::waiting})
        FLEETFIT_TRY(tables.jobs.remove(name, state));
      for (const auto* sql :
           {"DELETE FROM event_sequences WHERE agent = ?", "DELETE FROM agents WHERE name = ?"})
        FLEETFIT_TRY(tables.connection().write(sql, name));
      return true;
    });
  }

  Result<Ids> add_jobs(std::span<const JobRecord> jobs) override {
    for (const auto& job : jobs) FLEETFIT_TRY(check_new_job(job));
    return change_jobs([&](JobTables& tables) { return tables.add(jobs); });
  }
  Result<std::optional<JobRecord>> find_job(std::int64_t id) override {
    return traffic_.first<JobRecord>(sql_.jobs.find, id);
  }
  Result<Jobs> list_jobs(const JobFilter& filter) override {
    return list<JobRecord>(query_of(filter));
  }
  // The row without an agent holds the sums.
  Result<JobCounts> count_jobs() override { return count_jobs_of(""); }
  Result<JobCounts> count_jobs_of(std::string_view agent) override {
    return traffic_.first<JobCounts>(sql_.jobs.counts, agent).map([](const auto& counts) {
      return counts.value_or(JobCounts{});
    });
  }
  Result<Jobs> claim_jobs(std::string_view agent, Time now, Time until, std::size_t most) override {
    return change_jobs([&](JobTables& tables) -> Result<Jobs> {
      FLEETFIT_TRY(tables.lock_agent(agent));
      return tables.change_waiting(agent, most, [&](JobRecord& job) { claim(job, now, until); });
    });
  }
  // What a heartbeat writes may be forgotten: there is another one soon.
  Result<Ids> heartbeat(std::string_view agent, std::string_view serving,
                        std::span<const Running> running, Time now, Time until) override {
    FLEETFIT_TRY(check_serving(serving));
    return change(traffic_, Transaction::casual, [&](FleetTables& tables) -> Result<Ids> {
      FLEETFIT_ASSIGN(
          const auto seen,
          tables.connection().write_counted(
              "UPDATE agents SET serving = ?, last_seen = ? WHERE name = ?", serving, now, agent));
      if (seen == 0) return no_agent(agent);
      Ids stop;
      for (const auto& one : running) {
        FLEETFIT_ASSIGN(const auto heard,
                        tables.jobs.change(one.job, Heard::stops, [&](JobRecord& job) {
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
    return change_jobs([&](JobTables& tables) -> Result<Answers> {
      const auto locked = tables.lock_agent(agent);
      // One that was removed has no jobs left that could end.
      if (!locked && locked.error().code != ErrorCode::not_found)
        return tl::unexpected(locked.error());
      Answers answers;
      for (const auto& one : ends) {
        FLEETFIT_ASSIGN(const auto answer, tables.change(one.job, Ended::lost, [&](JobRecord& job) {
          return end(job, agent, one, now);
        }));
        answers.push_back(answer);
      }
      return answers;
    });
  }
  Result<bool> cancel_job(std::int64_t id, Time now) override {
    return change_jobs([&](JobTables& tables) {
      return tables.change(id, false, [&](JobRecord& job) { return cancel(job, now); });
    });
  }
  Result<Jobs> take_back_jobs(Time now) override {
    return change_jobs([&](JobTables& tables) {
      return tables.change_abandoned(now, [&](JobRecord& job) { take_back(job, now); });
    });
  }

  Result<std::size_t> add_events(std::span<const EventRecord> events) override {
    FLEETFIT_TRY(check_each(events));
    return change(traffic_, Transaction::write,
                  [&](FleetTables& tables) { return tables.add(events); });
  }
  Result<std::vector<EventRecord>> list_events(const EventFilter& filter) override {
    return list<EventRecord>(query_of(filter)).map([&](std::vector<EventRecord> events) {
      if (filter.newest) std::ranges::reverse(events);
      return events;
    });
  }
  Result<std::int64_t> newest_event() override {
    return first_number("SELECT last FROM fleet_counters WHERE what = ?", "events");
  }
  Result<std::int64_t> last_sequence(std::string_view agent) override {
    return first_number(sql_.find_sequence, agent);
  }
  Result<std::int64_t> remove_events_before(Time time) override {
    return traffic_.write_counted("DELETE FROM events WHERE time < ?", time);
  }

  Status save_file(const FileRecord& file) override {
    FLEETFIT_TRY(check(file));
    return records_.write(sql_.files.save, file);
  }
  Result<std::optional<FileRecord>> find_file(std::string_view hash) override {
    return traffic_.first<FileRecord>(sql_.files.find, hash);
  }
  Result<std::vector<FileRecord>> list_files(std::size_t limit) override {
    return records_.all<FileRecord>(sql_.files.select("ORDER BY created DESC, hash DESC LIMIT ?"),
                                    limit);
  }

  Status add_audit(const AuditRecord& entry) override {
    FLEETFIT_TRY(check(entry));
    return change(traffic_, Transaction::write,
                  [&](FleetTables& tables) { return tables.add(entry); });
  }
  Result<std::vector<AuditRecord>> list_audit(std::int64_t before, std::size_t limit) override {
    SqlQuery query{.sql = sql_.audit.select("WHERE true")};
    if (before > 0) query.restrict_by("id < ?", before);
    query.order_by("id DESC", limit);
    return list<AuditRecord>(query);
  }

  Status restore(const FleetRecords& records) override {
    FLEETFIT_TRY(check(records));
    return change(traffic_, Transaction::write,
                  [&](FleetTables& tables) { return tables.restore(records); });
  }

 private:
  // What `body` returns of the tables; the counts of jobs are saved in the end.
  template <class Body>
  std::invoke_result_t<Body, FleetTables&> change(SqlDatabase& database, Transaction kind,
                                                  const Body& body) {
    using Answer = std::invoke_result_t<Body, FleetTables&>;
    return database.transaction(kind, [&](SqlConnection& connection) -> Answer {
      FleetTables tables(connection, sql_);
      auto answer = body(tables);
      if (!answer) return answer;
      FLEETFIT_TRY(tables.jobs.save_counts());
      return answer;
    });
  }
  template <class Body>
  std::invoke_result_t<Body, JobTables&> change_jobs(const Body& body) {
    return change(traffic_, Transaction::write,
                  [&](FleetTables& tables) { return body(tables.jobs); });
  }

  template <class Record>
  Result<std::vector<Record>> list(const SqlQuery& query) {
    return records_.all<Record>(query.sql, query.values);
  }
  Result<std::int64_t> first_number(std::string_view sql, std::string_view key) {
    return traffic_.first<std::int64_t>(sql, key).map(
        [](const auto& found) { return found.value_or(0); });
  }

  SqlDatabase& records_;
  SqlDatabase& traffic_;
  const FleetSql sql_;
  const std::string find_agent_ = select_agents({}, "name = ?");
};

}  // namespace

std::unique_ptr<FleetStore> make_sql_fleet(const FleetDatabases& databases) {
  return std::make_unique<SqlFleet>(databases);
}

}  // namespace fleetfit::store
