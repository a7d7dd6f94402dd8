#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/store/fleet_store.h"
#include "store/sql/sql_connection.h"

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

/// Reads and writes jobs within a transaction of somebody else. How many there are in each state is
/// kept with every change and is to be saved in the end.
///
/// Who changes jobs of an agent locks the agent first, then jobs, then counts, those of all last:
/// so nobody waits for somebody who waits for him.
class JobTables {
 public:
  /// Both are borrowed.
  JobTables(SqlConnection& connection, const JobSql& sql) : connection_(connection), sql_(sql) {}

  SqlConnection& connection() { return connection_; }

  /// `not_found` if there is none.
  Status lock_agent(std::string_view name);

  Result<std::optional<std::int64_t>> of_key(const std::string& key);
  Status insert(const JobRecord& job);
  Status update(JobState before, const JobRecord& job);
  /// Those of an agent in a state.
  Status remove(std::string_view agent, JobState state);

  /// Nobody else changes them meanwhile.
  Result<std::optional<JobRecord>> locked(std::int64_t id);
  Result<std::vector<JobRecord>> waiting(std::string_view agent, std::size_t most);
  /// Those whose leases have ended, but for those that somebody is changing.
  Result<std::vector<JobRecord>> abandoned(Time now);

  Status save_counts();

 private:
  Status add_counts(std::string_view agent, const JobCounts& change);

  SqlConnection& connection_;
  const JobSql& sql_;
  std::map<std::string, JobCounts> changes_;  // of agents
};

}  // namespace fleetfit::store
