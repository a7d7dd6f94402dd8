#include "store/sql/sql_fleet_rows.h"

#include <fmt/format.h>

#include "store/job_transitions.h"
#include "store/sql/sql_values.h"

namespace fleetfit::store {
namespace {

void restrict_by(FleetQuery& query, std::string_view condition, SqlValue value) {
  query.sql += fmt::format(" AND {}", condition);
  query.values.push_back(value);
}

void order_by(FleetQuery& query, std::string_view order, std::size_t limit) {
  query.sql += fmt::format(" ORDER BY {} LIMIT ?", order);
  query.values.push_back(sql_value(sql_limit(limit)));
}

// What SQL's LIKE finds a text by, wherever it stands.
std::string pattern_of(std::string_view query) {
  std::string pattern = "%";
  for (const char c : searchable_text(query)) {
    if (c == '%' || c == '_' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return pattern + "%";
}

}  // namespace

// Fields are read in the order in which they are written here, that of the columns.

Result<TokenRecord> read_token(SqlRow& row) {
  TokenRecord token{.id = row.integer(), .name = row.text()};
  const auto role = parse_role(row.text());
  if (!role) return core::within(fmt::format("token {}", token.id), role.error());
  token.role = *role;
  token.hash = row.text();
  token.device = row.text();
  token.created = from_ms(row.integer());
  token.expires = read_time(row);
  token.revoked = read_time(row);
  return token;
}

Result<AgentRecord> read_agent(SqlRow& row) {
  return AgentRecord{.name = row.text(),
                     .version = row.text(),
                     .hardware = row.text(),
                     .probe = row.text(),
                     .serving = row.text(),
                     .created = from_ms(row.integer()),
                     .last_seen = read_time(row)};
}

Result<JobRecord> read_job(SqlRow& row) {
  JobRecord job{.id = row.integer(),
                .agent = row.text(),
                .kind = row.text(),
                .request = row.text(),
                .limits = row.text(),
                .key = row.optional_text().value_or("")};
  const auto state = parse_job_state(row.text());
  if (!state) return core::within(fmt::format("job {}", job.id), state.error());
  job.state = *state;
  job.reason = row.text();
  job.attempt = row.integer();
  job.most_attempts = row.integer();
  job.lease = read_time(row);
  job.cancel_requested = row.boolean();
  job.result = row.text();
  job.created = from_ms(row.integer());
  job.started = read_time(row);
  job.ended = read_time(row);
  return job;
}

Result<JobCounts> read_job_counts(SqlRow& row) {
  return JobCounts{.waiting = row.integer(),
                   .running = row.integer(),
                   .finished = row.integer(),
                   .failed = row.integer(),
                   .cancelled = row.integer()};
}

Result<EventRecord> read_event(SqlRow& row) {
  return EventRecord{.id = row.integer(),
                     .agent = row.text(),
                     .sequence = row.integer(),
                     .job = row.optional_integer(),
                     .kind = row.text(),
                     .body = row.text(),
                     .time = from_ms(row.integer())};
}

Result<FileRecord> read_file(SqlRow& row) {
  return FileRecord{.hash = row.text(),
                    .name = row.text(),
                    .kind = row.text(),
                    .bytes = row.integer(),
                    .created = from_ms(row.integer())};
}

Result<AuditRecord> read_audit(SqlRow& row) {
  return AuditRecord{.id = row.integer(),
                     .token = row.integer(),
                     .name = row.text(),
                     .action = row.text(),
                     .detail = row.text(),
                     .time = from_ms(row.integer())};
}

FleetQuery query_of(const AgentFilter& filter, std::string& pattern) {
  FleetQuery query{.sql = fmt::format("SELECT {} FROM agents WHERE name > ?",
                                      filter.probes ? kAgentColumns : kAgentColumnsWithoutProbe),
                   .values = {sql_value(filter.after)}};
  if (!filter.query.empty()) {
    pattern = pattern_of(filter.query);
    restrict_by(query, R"(search LIKE ? ESCAPE '\')", sql_value(pattern));
  }
  if (filter.seen_since) restrict_by(query, "last_seen >= ?", sql_value(to_ms(*filter.seen_since)));
  if (filter.seen_before)
    restrict_by(query, "last_seen < ?", sql_value(to_ms(*filter.seen_before)));
  if (filter.never_seen) query.sql += " AND last_seen IS NULL";
  order_by(query, "name", filter.limit);
  return query;
}

FleetQuery query_of(const JobFilter& filter) {
  FleetQuery query{.sql = fmt::format("SELECT {} FROM jobs WHERE true",
                                      filter.details ? kJobColumns : kJobColumnsWithoutDetails)};
  if (filter.agent) restrict_by(query, "agent = ?", sql_value(*filter.agent));
  if (filter.state) restrict_by(query, "state = ?", sql_value(to_string(*filter.state)));
  if (filter.before > 0) restrict_by(query, "id < ?", sql_value(filter.before));
  order_by(query, "id DESC", filter.limit);
  return query;
}

FleetQuery query_of(const EventFilter& filter) {
  FleetQuery query{.sql = fmt::format("SELECT {} FROM events WHERE id > ?", kEventColumns),
                   .values = {sql_value(filter.after)}};
  if (filter.agent) restrict_by(query, "agent = ?", sql_value(*filter.agent));
  if (filter.kind) restrict_by(query, "kind = ?", sql_value(*filter.kind));
  if (filter.job) restrict_by(query, "job = ?", sql_value(*filter.job));
  order_by(query, filter.newest ? "id DESC" : "id", filter.limit);
  return query;
}

}  // namespace fleetfit::store
