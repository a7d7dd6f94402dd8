#pragma once

#include <string>
#include <string_view>

#include "fleetfit/core/result.h"
#include "fleetfit/store/fleet_store.h"

/// What becomes of a job by the calls of a FleetStore: the same in all stores. Records and texts
/// have been checked.
namespace fleetfit::store {

/// One that waits, of what was asked for.
JobRecord new_job(const JobRecord& wanted, std::int64_t id);

bool has_ended(JobState state);

void claim(JobRecord& job, Time now, Time until);

/// What an agent that runs a job is to do with it.
enum class Heard : std::uint8_t { goes_on, stops };
Heard hear_of(JobRecord& job, std::string_view agent, const FleetStore::Running& running, Time now,
              Time until);

Ended end(JobRecord& job, std::string_view agent, const JobEnd& end, Time now);
/// False if it has ended.
bool cancel(JobRecord& job, Time now);
/// Its lease has ended.
void take_back(JobRecord& job, Time now);

/// The jobs in a state.
std::int64_t& count_of(JobCounts& counts, JobState state);

/// In what a query is looked for, and how it is written then.
std::string searchable_text(const AgentRecord& agent);
std::string searchable_text(std::string_view query);

tl::unexpected<Error> no_agent(std::string_view name);
tl::unexpected<Error> token_exists(std::string_view name);

}  // namespace fleetfit::store
