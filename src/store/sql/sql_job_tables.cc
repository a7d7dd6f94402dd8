#include "store/sql/sql_job_tables.h"

#include <fmt/format.h>

#include "store/job_transitions.h"
#include "store/sql/sql_records.h"
#include "store/sql/sql_text.h"
#include "store/sql/sql_values.h"

namespace fleetfit::store {
namespace {

void add(JobCounts& sum, const JobCounts& change) {
  sum.waiting += change.waiting;
  sum.running += change.running;
  sum.finished += change.finished;
  sum.failed += change.failed;
  sum.cancelled += change.cancelled;
}

}  // namespace

// Partial indexes are named where the planner cannot know how much shorter they are than the table.
JobSql::JobSql(const SqlDialect& dialect) : of_key("SELECT id FROM jobs WHERE key = ?") {
  const auto select_jobs = [&](std::string_view rest, std::string_view lock) {
    return select<JobRecord>(fmt::format("jobs {}{}", rest, lock));
  };
  lock_agent = fmt::format("SELECT name FROM agents WHERE name = ?{}", dialect.lock);
  find = select_jobs("WHERE id = ?", "");
  locked = select_jobs("WHERE id = ?", dialect.lock);
  waiting = select_jobs("WHERE agent = ? AND state = 'waiting' ORDER BY id LIMIT ?", dialect.lock);
  abandoned = select_jobs(fmt::format("{}WHERE lease <= ? ORDER BY lease, id",
                                      dialect.names_indexes ? "INDEXED BY jobs_by_lease " : ""),
                          dialect.lock_free_rows);
  insert = insert_into("jobs", columns_of<JobRecord>());
  update = store::update("jobs", changing_columns_of<JobRecord>(), "WHERE id = ?");
  const auto states = columns_of<JobCounts>();
  std::string sums;
  for (const auto state : states.names)
    sums += fmt::format("{}{} = job_counts.{} + excluded.{}", sums.empty() ? "" : ", ", state,
                        state, state);
  add_counts = fmt::format("{} ON CONFLICT (agent) DO UPDATE SET {}",
                           insert_into("job_counts", "agent, " + states.list()), sums);
  counts = select<JobCounts>("job_counts WHERE agent = ?");
}

Status JobTables::lock_agent(std::string_view name) {
  FLEETFIT_ASSIGN(const auto found, connection_.first(read_name, sql_.lock_agent, name));
  if (!found) return no_agent(name);
  return {};
}

Result<std::optional<std::int64_t>> JobTables::of_key(const std::string& key) {
  if (key.empty()) return std::nullopt;
  return connection_.first(read_id, sql_.of_key, key);
}

Status JobTables::insert(const JobRecord& job) {
  ++count_of(changes_[job.agent], job.state);
  return connection_.write(sql_.insert, SqlValues().add_record(job).all());
}

Status JobTables::update(JobState before, const JobRecord& job) {
  if (before != job.state) {
    auto& counts = changes_[job.agent];
    --count_of(counts, before);
    ++count_of(counts, job.state);
  }
  return connection_.write(sql_.update, SqlValues().add_changing(job).add(job.id).all());
}

Status JobTables::remove(std::string_view agent, JobState state) {
  FLEETFIT_ASSIGN(const auto removed,
                  connection_.write_counted("DELETE FROM jobs WHERE agent = ? AND state = ?", agent,
                                            to_string(state)));
  if (removed > 0) count_of(changes_[std::string(agent)], state) -= removed;
  return {};
}

Result<std::optional<JobRecord>> JobTables::locked(std::int64_t id) {
  return connection_.first(read_row<JobRecord>, sql_.locked, id);
}

Result<std::vector<JobRecord>> JobTables::waiting(std::string_view agent, std::size_t most) {
  return connection_.all(read_row<JobRecord>, sql_.waiting, agent, sql_limit(most));
}

Result<std::vector<JobRecord>> JobTables::abandoned(Time now) {
  return connection_.all(read_row<JobRecord>, sql_.abandoned, to_ms(now));
}

Status JobTables::save_counts() {
  JobCounts sum;
  for (const auto& [agent, change] : changes_) {
    FLEETFIT_TRY(add_counts(agent, change));
    add(sum, change);
  }
  if (changes_.empty()) return {};
  changes_.clear();
  return add_counts("", sum);
}

Status JobTables::add_counts(std::string_view agent, const JobCounts& change) {
  return connection_.write(sql_.add_counts, SqlValues(agent).add_record(change).all());
}

}  // namespace fleetfit::store
