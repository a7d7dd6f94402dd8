#include "store/sql/sql_fleet_queries.h"

#include <fmt/format.h>

#include "store/job_transitions.h"
#include "store/sql/sql_records.h"
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

std::string job_columns(const JobFilter& filter) {
  const auto columns = columns_of<JobRecord>();
  if (filter.details) return columns.list();
  return columns.list({{"request", "'{}'"}, {"limits", "'{}'"}, {"result", "'{}'"}});
}

std::string agent_columns(const AgentFilter& filter) {
  return columns_of<AgentRecord>().list(
      {{"probe", filter.probes ? "(SELECT probe FROM agent_probes WHERE agent = name)" : "'{}'"}});
}

FleetQuery query_of(const AgentFilter& filter, std::string& pattern) {
  FleetQuery query{
      .sql = fmt::format("SELECT {} FROM agents WHERE name > ?", agent_columns(filter)),
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
  FleetQuery query{.sql = fmt::format("SELECT {} FROM jobs WHERE true", job_columns(filter))};
  if (filter.agent) restrict_by(query, "agent = ?", sql_value(*filter.agent));
  if (filter.state) restrict_by(query, "state = ?", sql_value(to_string(*filter.state)));
  if (filter.before > 0) restrict_by(query, "id < ?", sql_value(filter.before));
  order_by(query, "id DESC", filter.limit);
  return query;
}

FleetQuery query_of(const EventFilter& filter) {
  FleetQuery query{.sql = select<EventRecord>("events WHERE id > ?"),
                   .values = {sql_value(filter.after)}};
  if (filter.agent) restrict_by(query, "agent = ?", sql_value(*filter.agent));
  if (filter.kind) restrict_by(query, "kind = ?", sql_value(*filter.kind));
  if (filter.job) restrict_by(query, "job = ?", sql_value(*filter.job));
  order_by(query, filter.newest ? "id DESC" : "id", filter.limit);
  return query;
}

}  // namespace fleetfit::store
