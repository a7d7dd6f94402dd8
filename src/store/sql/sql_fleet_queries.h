#pragma once

#include <string>
#include <vector>

#include "fleetfit/store/fleet_store.h"
#include "store/sql/sql_connection.h"

/// What is asked of the tables of a fleet.
namespace fleetfit::store {

/// Columns of what is listed without its long texts.
std::string job_columns(const JobFilter& filter);
std::string agent_columns(const AgentFilter& filter);

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
