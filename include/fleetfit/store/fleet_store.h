#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/store/fleet_records.h"

namespace fleetfit::store {

/// A page of a long list. What is absent does not restrict.
struct AgentFilter {
  std::string query = {};  ///< part of name or hardware, in any case of the letters A to Z
  std::optional<Time> seen_since = {};   ///< last seen then or later
  std::optional<Time> seen_before = {};  ///< seen, but before
  bool never_seen = false;               ///< only those
  std::string after = {};                ///< names above this one
  std::size_t limit = 100;
  bool probes = true;  ///< false leaves them "{}", which is quicker
};

struct JobFilter {
  std::optional<std::string> agent = {};
  std::optional<JobState> state = {};
  std::int64_t before = 0;  ///< ids under this one; 0: from the newest
  std::size_t limit = 100;
  bool details = true;  ///< false leaves request, limits and result "{}", which is quicker
};

struct EventFilter {
  std::optional<std::string> agent = {};
  std::optional<std::string> kind = {};
  std::optional<std::int64_t> job = {};
  std::int64_t after = 0;  ///< ids above this one
  bool newest = false;     ///< the newest `limit` of them instead of the oldest
  std::size_t limit = 100;
};

/// How an agent's attempt at a job has ended.
struct JobEnd {
  std::int64_t job = 0;
  std::int64_t attempt = 0;
  JobState state = JobState::finished;  ///< or failed
  std::string reason = {};
  std::string result = "{}";
};

enum class Ended : std::uint8_t {
  now,      ///< it counts
  already,  ///< the same attempt had ended the job so before
  lost,     ///< the job is another attempt's by now, cancelled or removed; nothing was written
};

struct AgentCounts {
  std::int64_t all = 0;
  std::int64_t online = 0;  ///< seen since a given time
  std::int64_t never = 0;

  bool operator==(const AgentCounts&) const = default;
};

struct JobCounts {
  std::int64_t waiting = 0;
  std::int64_t running = 0;
  std::int64_t finished = 0;
  std::int64_t failed = 0;
  std::int64_t cancelled = 0;

  bool operator==(const JobCounts&) const = default;
};
core::Fields fields_of(const JobCounts*);

/// Records as they stand in a store, ids included.
struct FleetRecords {
  std::vector<TokenRecord> tokens = {};
  std::vector<AgentRecord> agents = {};
  std::vector<JobRecord> jobs = {};
  std::vector<EventRecord> events = {};
  std::vector<FileRecord> files = {};
  std::vector<AuditRecord> audit = {};
  std::map<std::string, std::int64_t> sequences = {};  ///< of agents: FleetStore::last_sequence
};

/// The part of a Store that keeps a fleet; the same promises hold. Of calls that take many of
/// something, each is one step: all is written, or nothing; and much quicker than one by one.
/// Times are milliseconds at 100,000 agents and a million jobs and events.
class FleetStore {
 public:
  virtual ~FleetStore() = default;

  /// Gives its id. `invalid_input` if there is one of that hash.
  virtual Result<std::int64_t> add_token(const TokenRecord& token) = 0;
  virtual Result<std::optional<TokenRecord>> find_token(std::string_view hash) = 0;
  /// By id.
  virtual Result<std::vector<TokenRecord>> list_tokens() = 0;
  /// False if there is none, or it was revoked before.
  virtual Result<bool> revoke_token(std::int64_t id, Time now) = 0;

  /// Adds agents, or replaces those of the same names but for the date of creation and the token.
  /// An empty `last_seen` leaves the one that is known.
  virtual Status save_agents(std::span<const AgentRecord> agents) = 0;
  virtual Result<std::optional<AgentRecord>> find_agent(std::string_view name) = 0;
  /// By name.
  virtual Result<std::vector<AgentRecord>> list_agents(const AgentFilter& filter) = 0;
  virtual Result<AgentCounts> count_agents(Time online_since) = 0;
  /// Those that were registered first by that token.
  virtual Result<std::int64_t> count_agents_of(std::int64_t token) = 0;
  /// With its jobs that have not ended; its events stay. Says whether there was one.
  virtual Result<bool> remove_agent(std::string_view name) = 0;

  /// Adds jobs, which are waiting, and gives their ids in order; one whose key exists is the one
  /// that there is. What the records say of states, attempts and results does not matter.
  /// `not_found` if an agent does not exist.
  virtual Result<std::vector<std::int64_t>> add_jobs(std::span<const JobRecord> jobs) = 0;
  virtual Result<std::optional<JobRecord>> find_job(std::int64_t id) = 0;
  /// Newest first.
  virtual Result<std::vector<JobRecord>> list_jobs(const JobFilter& filter) = 0;
  virtual Result<JobCounts> count_jobs() = 0;
  virtual Result<JobCounts> count_jobs_of(std::string_view agent) = 0;
  /// The agent's waiting jobs, oldest first, become its running ones until `until`. `not_found` if
  /// there is no such agent.
  virtual Result<std::vector<JobRecord>> claim_jobs(std::string_view agent, Time now, Time until,
                                                    std::size_t most) = 0;
  /// An attempt at a job.
  struct Running {
    std::int64_t job = 0;
    std::int64_t attempt = 0;
  };
  /// What an agent says of itself: it was seen, it serves this, and it runs these jobs, whose
  /// leases are prolonged; those that wait again because their leases had ended are its own once
  /// more. Gives the ids of jobs that it is to stop: those asked to be cancelled, which they are
  /// from now on, and those that are no longer its own. `not_found` if there is no such agent.
  virtual Result<std::vector<std::int64_t>> heartbeat(std::string_view agent,
                                                      std::string_view serving,
                                                      std::span<const Running> running, Time now,
                                                      Time until) = 0;
  /// In the same order. An attempt whose lease has ended still counts while nobody has claimed the
  /// job again.
  virtual Result<std::vector<Ended>> end_jobs(std::string_view agent, std::span<const JobEnd> ends,
                                              Time now) = 0;
  /// A waiting job is cancelled at once, a running one when its agent hears of it, unless it ends
  /// before. False if it has ended, or there is none.
  virtual Result<bool> cancel_job(std::int64_t id, Time now) = 0;
  /// Jobs whose leases have ended wait again; those that were tried often enough have failed, those
  /// asked to be cancelled are. Gives them as they are now.
  virtual Result<std::vector<JobRecord>> take_back_jobs(Time now) = 0;

  /// Adds events, whose ids are the next ones; those of an agent whose sequence is not above the
  /// last one known are passed over. Gives how many were new.
  virtual Result<std::size_t> add_events(std::span<const EventRecord> events) = 0;
  /// By id. Who follows by `after` misses none.
  virtual Result<std::vector<EventRecord>> list_events(const EventFilter& filter) = 0;
  /// The last id given; 0 if none was.
  virtual Result<std::int64_t> newest_event() = 0;
  /// The highest sequence known of an agent, after which its events go on; 0 if none is.
  virtual Result<std::int64_t> last_sequence(std::string_view agent) = 0;
  /// Forgets events before that time and says how many there were.
  virtual Result<std::int64_t> remove_events_before(Time time) = 0;

  /// Adds a file, or replaces the one of that hash.
  virtual Status save_file(const FileRecord& file) = 0;
  virtual Result<std::optional<FileRecord>> find_file(std::string_view hash) = 0;
  /// Newest first.
  virtual Result<std::vector<FileRecord>> list_files(std::size_t limit) = 0;

  virtual Status add_audit(const AuditRecord& entry) = 0;
  /// Newest first, ids under `before` (0: from the newest).
  virtual Result<std::vector<AuditRecord>> list_audit(std::int64_t before, std::size_t limit) = 0;

  /// Adds records with the ids that they have, as `list_…` of another store gave them. Fails with
  /// `invalid_input` if there is a token, job, event or entry of the same id.
  virtual Status restore(const FleetRecords& records) = 0;
};

}  // namespace fleetfit::store
