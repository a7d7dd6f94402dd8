#include "store/sql/sql_job_tables.h"

#include <fmt/format.h>

#include "store/job_transitions.h"
#include "store/sql/sql_fleet_rows.h"
#include "store/sql/sql_text.h"
#include "store/sql/sql_values.h"

namespace fleetfit::store {
namespace {

std::optional<std::string_view> null_if_empty(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
}

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
  const auto select = [&](std::string_view rest, std::string_view lock) {
    return fmt::format("SELECT {} FROM jobs {}{}", kJobColumns, rest, lock);
  };
  lock_agent = fmt::format("SELECT name FROM agents WHERE name = ?{}", dialect.lock);
  find = select("WHERE id = ?", "");
  locked = select("WHERE id = ?", dialect.lock);
  waiting = select("WHERE agent = ? AND state = 'waiting' ORDER BY id LIMIT ?", dialect.lock);
  abandoned = select(fmt::format("{}WHERE lease <= ? ORDER BY lease, id",
                                 dialect.names_indexes ? "INDEXED BY jobs_by_lease " : ""),
                     dialect.lock_free_rows);
  insert = fmt::format("INSERT INTO jobs ({}) VALUES ({})", kJobColumns,
                       placeholders(count_columns(kJobColumns)));
  add_counts = fmt::format(
      "INSERT INTO job_counts (agent, {}) VALUES (?, ?, ?, ?, ?, ?) "
      "ON CONFLICT (agent) DO UPDATE SET waiting = job_counts.waiting + excluded.waiting, "
      "running = job_counts.running + excluded.running, "
      "finished = job_counts.finished + excluded.finished, "
      "failed = job_counts.failed + excluded.failed, "
      "cancelled = job_counts.cancelled + excluded.cancelled",
      kJobCountColumns);
  counts = fmt::format("SELECT {} FROM job_counts WHERE agent = ?", kJobCountColumns);
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
  return connection_.write(sql_.insert, job.id, job.agent, job.kind, job.request, job.limits,
                           null_if_empty(job.key), to_string(job.state), job.reason, job.attempt,
                           job.most_attempts, to_ms(job.lease), job.cancel_requested, job.result,
                           to_ms(job.created), to_ms(job.started), to_ms(job.ended));
}

Status JobTables::update(JobState before, const JobRecord& job) {
  if (before != job.state) {
    auto& counts = changes_[job.agent];
    --count_of(counts, before);
    ++count_of(counts, job.state);
  }
  return connection_.write(
      "UPDATE jobs SET state = ?, reason = ?, attempt = ?, lease = ?, cancel_requested = ?, "
      "result = ?, started = ?, ended = ? WHERE id = ?",
      to_string(job.state), job.reason, job.attempt, to_ms(job.lease), job.cancel_requested,
      job.result, to_ms(job.started), to_ms(job.ended), job.id);
}

Status JobTables::remove(std::string_view agent, JobState state) {
  FLEETFIT_ASSIGN(const auto removed,
                  connection_.write_counted("DELETE FROM jobs WHERE agent = ? AND state = ?", agent,
                                            to_string(state)));
  if (removed > 0) count_of(changes_[std::string(agent)], state) -= removed;
  return {};
}

Result<std::optional<JobRecord>> JobTables::locked(std::int64_t id) {
  return connection_.first(read_job, sql_.locked, id);
}

Result<std::vector<JobRecord>> JobTables::waiting(std::string_view agent, std::size_t most) {
  return connection_.all(read_job, sql_.waiting, agent, sql_limit(most));
}

Result<std::vector<JobRecord>> JobTables::abandoned(Time now) {
  return connection_.all(read_job, sql_.abandoned, to_ms(now));
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
  return connection_.write(sql_.add_counts, agent, change.waiting, change.running, change.finished,
                           change.failed, change.cancelled);
}

}  // namespace fleetfit::store
