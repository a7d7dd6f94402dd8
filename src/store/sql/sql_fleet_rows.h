#pragma once

#include <string_view>

#include "fleetfit/store/fleet_store.h"
#include "store/sql/sql_connection.h"

/// Rows of the tables of a fleet, and the columns that each is read from.
namespace fleetfit::store {

inline constexpr std::string_view kTokenColumns =
    "id, name, role, hash, device, created, expires, revoked";
inline constexpr std::string_view kJobColumns =
    "id, agent, kind, request, limits, key, state, reason, attempt, most_attempts, lease, "
    "cancel_requested, result, created, started, ended";
inline constexpr std::string_view kJobColumnsWithoutDetails =
    "id, agent, kind, '{}', '{}', key, state, reason, attempt, most_attempts, lease, "
    "cancel_requested, '{}', created, started, ended";
inline constexpr std::string_view kJobCountColumns =
    "waiting, running, finished, failed, cancelled";
inline constexpr std::string_view kEventColumns = "id, agent, sequence, job, kind, body, time";
inline constexpr std::string_view kFileColumns = "hash, name, kind, bytes, created";
inline constexpr std::string_view kAuditColumns = "id, token, name, action, detail, time";
inline constexpr std::string_view kAgentColumns =
    "name, version, hardware, (SELECT probe FROM agent_probes WHERE agent = name), serving, "
    "created, last_seen";
inline constexpr std::string_view kAgentColumnsWithoutProbe =
    "name, version, hardware, '{}', serving, created, last_seen";

Result<TokenRecord> read_token(SqlRow& row);
Result<AgentRecord> read_agent(SqlRow& row);
Result<JobRecord> read_job(SqlRow& row);
Result<JobCounts> read_job_counts(SqlRow& row);
Result<EventRecord> read_event(SqlRow& row);
Result<FileRecord> read_file(SqlRow& row);
Result<AuditRecord> read_audit(SqlRow& row);

/// A query that is put together from what a filter asks for. Texts are borrowed.
struct FleetQuery {
  std::string sql = {};
  std::vector<SqlValue> values = {};
};

/// `pattern` is kept here, for the query.
FleetQuery query_of(const AgentFilter& filter, std::string& pattern);
FleetQuery query_of(const JobFilter& filter);
FleetQuery query_of(const EventFilter& filter);

}  // namespace fleetfit::store
