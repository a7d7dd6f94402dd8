#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/store/fleet_store.h"
#include "store/sql/sql_connection.h"
#include "store/sql/sql_table.h"

namespace fleetfit::store {

/// The statements on jobs, in the words of a data base.
struct JobSql {
  explicit JobSql(const SqlDialect& dialect);

  std::string lock_agent;
  std::string find;
  std::string of_key;
  std::string locked;
  std::string waiting;
  std::string abandoned;
  std::string insert;
  std::string update;
  std::string add_counts;
  std::string counts;
};

SqlQuery query_of(const JobFilter& filter);

/// Reads and writes jobs within a transaction of somebody else. How many there are in each state is
/// kept with every change and is to be saved in the end.
///
/// Who changes jobs of an agent locks the agent first, then jobs, then counts, those of all last:
/// so nobody waits for somebody who waits for him.
class JobTables {
 public:
  /// Both are borrowed.
  JobTables(SqlConnection& connection, const JobSql& sql) : connection_(connection), sql_(sql) {}

  /// `not_found` if there is none.
  Status lock_agent(std::string_view name);

  /// Their ids. Jobs whose keys there are keep theirs.
  Result<std::vector<std::int64_t>> add(std::span<const JobRecord> jobs);
  /// One that has its id.
  Status insert(const JobRecord& job);
  /// Those of an agent in a state.
  Status remove(std::string_view agent, JobState state);

  /// What `body` gives of the job, which it may change; `none` if there is no such job. Nobody else
  /// changes it meanwhile.
  template <class Answer, class Body>
  Result<Answer> change(std::int64_t id, Answer none, const Body& body) {
    FLEETFIT_ASSIGN(const auto found, connection_.first<JobRecord>(sql_.locked, id));
    if (!found) return none;
    auto job = *found;
    const Answer answer = body(job);
    if (job == *found) return answer;
    return update(found->state, job).map([&] { return answer; });
  }
  using Change = std::function<void(JobRecord&)>;
  /// Changes waiting jobs of an agent, and gives them as they are then.
  Result<std::vector<JobRecord>> change_waiting(std::string_view agent, std::size_t most,
                                                const Change& change);
  /// The same of those whose leases have ended, but for those that somebody is changing.
  Result<std::vector<JobRecord>> change_abandoned(Time now, const Change& change);

  Status save_counts();

 private:
  Status update(JobState before, const JobRecord& job);
  Result<std::vector<JobRecord>> change_all(Result<std::vector<JobRecord>> jobs,
                                            const Change& change);

  SqlConnection& connection_;
  const JobSql& sql_;
  std::map<std::string, JobCounts> changes_;  // of agents
};

/// The statements on the tables of a fleet.
struct FleetSql {
  explicit FleetSql(const SqlDialect& dialect) : jobs(dialect) {}

  const JobSql jobs;
  const SqlTable<TokenRecord> tokens{"tokens"};
  const SqlTable<EventRecord> events{"events"};
  const SqlTable<AuditRecord> audit{"audit"};
  const SqlTable<FileRecord> files{"files"};
  const std::string find_token = tokens.select("WHERE hash = ?");
  const std::string save_agent =
      "INSERT INTO agents (name, version, hardware, search, serving, created, last_seen) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET version = excluded.version, "
      "hardware = excluded.hardware, search = excluded.search, serving = excluded.serving, "
      "last_seen = coalesce(excluded.last_seen, agents.last_seen)";
  const std::string save_probe = upsert("agent_probes", {{"agent", "probe"}}, 1);
  const std::string find_sequence = "SELECT sequence FROM event_sequences WHERE agent = ?";
  const std::string save_sequence = upsert("event_sequences", {{"agent", "sequence"}}, 1);
};

/// Writes the tables of a fleet within a transaction of somebody else.
class FleetTables {
 public:
  /// Both are borrowed.
  FleetTables(SqlConnection& connection, const FleetSql& sql)
      : jobs(connection, sql.jobs), connection_(connection), sql_(sql) {}

  JobTables jobs;

  SqlConnection& connection() { return connection_; }

  /// Its id.
  Result<std::int64_t> add(const TokenRecord& token);
  Status add(const AuditRecord& entry);
  /// How many are new.
  Result<std::size_t> add(std::span<const EventRecord> events);
  Status save(std::span<const AgentRecord> agents);
  /// Records that have their ids.
  Status restore(const FleetRecords& records);

 private:
  using Sequences = std::map<std::string, std::int64_t>;

  template <class Record>
  Status restore(const std::vector<Record>& records, const std::string& insert,
                 std::string_view what);
  Status raise_counter(std::string_view what, std::int64_t to);
  Result<bool> advance(Sequences& sequences, const EventRecord& event);
  Status save(const Sequences& sequences);

  SqlConnection& connection_;
  const FleetSql& sql_;
};

}  // namespace fleetfit::store
