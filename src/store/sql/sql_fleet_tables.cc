#include "store/sql/sql_fleet_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "store/job_transitions.h"

namespace fleetfit::store {
namespace {

void add_to(JobCounts& sum, const JobCounts& change) {
  sum.waiting += change.waiting;
  sum.running += change.running;
  sum.finished += change.finished;
  sum.failed += change.failed;
  sum.cancelled += change.cancelled;
}

// The last of `count` new ids of "tokens", "jobs", "events" or "audit". Nobody else gets any until
// the transaction ends.
Result<std::int64_t> next_id(SqlConnection& connection, std::string_view what,
                             std::int64_t count = 1) {
  FLEETFIT_ASSIGN(
      const auto last,
      connection.first<std::int64_t>(
          "UPDATE fleet_counters SET last = last + ? WHERE what = ? RETURNING last", count, what));
  if (last) return *last;
  return connection.failure(ErrorCode::invalid_input,
                            fmt::format("its table fleet_counters has no row of {}", what));
}

template <class Record>
std::int64_t last_id(const std::vector<Record>& records) {
  std::int64_t last = 0;
  for (const auto& record : records) last = std::max(last, record.id);
  return last;
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
  std::string sums;
  for (const auto state : columns_of<JobCounts>().names)
    sums += fmt::format("{0}{1} = job_counts.{1} + excluded.{1}", sums.empty() ? "" : ", ", state);
  add_counts =
      fmt::format("{} ON CONFLICT (agent) DO UPDATE SET {}",
                  insert_into("job_counts", columns_of<JobCounts>().behind({"agent"})), sums);
  counts = select<JobCounts>("job_counts WHERE agent = ?");
}

SqlQuery query_of(const JobFilter& filter) {
  const auto columns = columns_of<JobRecord>();
  SqlQuery query{
      .sql = fmt::format(
          "SELECT {} FROM jobs WHERE true",
          filter.details
              ? columns.list()
              : columns.list({{"request", "'{}'"}, {"limits", "'{}'"}, {"result", "'{}'"}}))};
  query.restrict_by("agent = ?", filter.agent);
  query.restrict_by("state = ?", filter.state);
  if (filter.before > 0) query.restrict_by("id < ?", filter.before);
  query.order_by("id DESC", filter.limit);
  return query;
}

Status JobTables::lock_agent(std::string_view name) {
  FLEETFIT_ASSIGN(const auto found, connection_.first<std::string>(sql_.lock_agent, name));
  if (!found) return no_agent(name);
  return {};
}

Result<std::vector<std::int64_t>> JobTables::add(std::span<const JobRecord> jobs) {
  std::set<std::string_view> agents;
  for (const auto& job : jobs) agents.insert(job.agent);
  for (const auto agent : agents) FLEETFIT_TRY(lock_agent(agent));
  const auto count = static_cast<std::int64_t>(jobs.size());
  FLEETFIT_ASSIGN(const auto last, next_id(connection_, "jobs", count));
  std::int64_t next = last - count;
  std::vector<std::int64_t> ids;
  for (const auto& job : jobs) {
    std::optional<std::int64_t> known;
    if (!job.key.empty()) {
      FLEETFIT_ASSIGN(known, connection_.first<std::int64_t>(sql_.of_key, job.key));
    }
    ids.push_back(known ? *known : ++next);
    if (!known) FLEETFIT_TRY(insert(new_job(job, next)));
  }
  return ids;
}

Status JobTables::insert(const JobRecord& job) {
  ++count_of(changes_[job.agent], job.state);
  return connection_.write(sql_.insert, job);
}

Status JobTables::update(JobState before, const JobRecord& job) {
  if (before != job.state) {
    auto& counts = changes_[job.agent];
    --count_of(counts, before);
    ++count_of(counts, job.state);
  }
  return connection_.write(sql_.update, changing(job), job.id);
}

Status JobTables::remove(std::string_view agent, JobState state) {
  FLEETFIT_ASSIGN(
      const auto removed,
      connection_.write_counted("DELETE FROM jobs WHERE agent = ? AND state = ?", agent, state));
  if (removed > 0) count_of(changes_[std::string(agent)], state) -= removed;
  return {};
}

Result<std::vector<JobRecord>> JobTables::change_waiting(std::string_view agent, std::size_t most,
                                                         const Change& change) {
  return change_all(connection_.all<JobRecord>(sql_.waiting, agent, most), change);
}

Result<std::vector<JobRecord>> JobTables::change_abandoned(Time now, const Change& change) {
  return change_all(connection_.all<JobRecord>(sql_.abandoned, now), change);
}

Result<std::vector<JobRecord>> JobTables::change_all(Result<std::vector<JobRecord>> jobs,
                                                     const Change& change) {
  if (!jobs) return jobs;
  for (auto& job : *jobs) {
    const auto before = job.state;
    change(job);
    FLEETFIT_TRY(update(before, job));
  }
  return jobs;
}

Status JobTables::save_counts() {
  JobCounts sum;
  for (const auto& [agent, change] : changes_) {
    FLEETFIT_TRY(connection_.write(sql_.add_counts, agent, change));
    add_to(sum, change);
  }
  if (changes_.empty()) return {};
  changes_.clear();
  return connection_.write(sql_.add_counts, "", sum);
}

Result<std::int64_t> FleetTables::add(const TokenRecord& token) {
  FLEETFIT_ASSIGN(const auto known, connection_.first<TokenRecord>(sql_.find_token, token.hash));
  if (known) return token_exists(token.name);
  FLEETFIT_ASSIGN(const auto id, next_id(connection_, "tokens"));
  return connection_.write(sql_.tokens.insert, id, without_id(token)).map([&] { return id; });
}

Status FleetTables::add(const AuditRecord& entry) {
  FLEETFIT_ASSIGN(const auto id, next_id(connection_, "audit"));
  return connection_.write(sql_.audit.insert, id, without_id(entry));
}

// Counters are locked first, so that events are seen in the order of their ids.
Result<std::size_t> FleetTables::add(std::span<const EventRecord> events) {
  FLEETFIT_ASSIGN(auto id, next_id(connection_, "events", 0));
  Sequences sequences;
  std::size_t added = 0;
  for (const auto& event : events) {
    FLEETFIT_ASSIGN(const auto is_new, advance(sequences, event));
    if (!is_new) continue;
    FLEETFIT_TRY(connection_.write(sql_.events.insert, ++id, without_id(event)));
    ++added;
  }
  FLEETFIT_TRY(save(sequences));
  return raise_counter("events", id).map([&] { return added; });
}

// Whether the event's sequence is above those that are known, in the data base or since.
Result<bool> FleetTables::advance(Sequences& sequences, const EventRecord& event) {
  if (event.sequence == 0) return true;
  auto known = sequences.find(event.agent);
  if (known == sequences.end()) {
    FLEETFIT_ASSIGN(const auto last,
                    connection_.first<std::int64_t>(sql_.find_sequence, event.agent));
    known = sequences.emplace(event.agent, last.value_or(0)).first;
  }
  if (event.sequence <= known->second) return false;
  known->second = event.sequence;
  return true;
}

// In the order of their names, as others may save some of them at the same time.
Status FleetTables::save(std::span<const AgentRecord> agents) {
  std::vector<const AgentRecord*> sorted;
  for (const auto& agent : agents) sorted.push_back(&agent);
  std::ranges::stable_sort(sorted, {}, [](const AgentRecord* agent) { return agent->name; });
  for (const auto* agent : sorted) {
    FLEETFIT_TRY(connection_.write(sql_.save_agent, agent->name, agent->version, agent->hardware,
                                   searchable_text(*agent), agent->serving, agent->created,
                                   agent->last_seen, agent->token));
    FLEETFIT_TRY(connection_.write(sql_.save_probe, agent->name, agent->probe));
  }
  return {};
}

Status FleetTables::save(const Sequences& sequences) {
  for (const auto& [agent, sequence] : sequences)
    FLEETFIT_TRY(connection_.write(sql_.save_sequence, agent, sequence));
  return {};
}

Status FleetTables::raise_counter(std::string_view what, std::int64_t to) {
  return connection_.write("UPDATE fleet_counters SET last = ? WHERE what = ? AND last < ?", to,
                           what, to);
}

template <class Record>
Status FleetTables::restore(const std::vector<Record>& records, const std::string& insert,
                            std::string_view what) {
  for (const auto& record : records) FLEETFIT_TRY(connection_.write(insert, record));
  return raise_counter(what, last_id(records));
}

Status FleetTables::restore(const FleetRecords& records) {
  auto sequences = records.sequences;
  for (const auto& event : records.events)
    if (event.sequence > 0)
      sequences[event.agent] = std::max(sequences[event.agent], event.sequence);
  FLEETFIT_TRY(restore(records.tokens, sql_.tokens.insert, "tokens"));
  FLEETFIT_TRY(save(std::span(records.agents)));
  for (const auto& job : records.jobs) FLEETFIT_TRY(jobs.insert(job));
  FLEETFIT_TRY(raise_counter("jobs", last_id(records.jobs)));
  FLEETFIT_TRY(restore(records.events, sql_.events.insert, "events"));
  FLEETFIT_TRY(restore(records.audit, sql_.audit.insert, "audit"));
  for (const auto& file : records.files) FLEETFIT_TRY(connection_.write(sql_.files.save, file));
  return save(sequences);
}

}  // namespace fleetfit::store
