#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

/// What travels between server, agents and clients (docs/fleet.md). Every `parse_…` takes what
/// others sent and fails with `invalid_input`, naming the field; `to_json` writes what the same
/// function reads.
namespace fleetfit::fleet {

/// A name of a device: 1 to 100 letters, digits, '.', '_' and '-', starting with a letter or digit.
Status check_name(std::string_view name);

/// 64 lower-case hex digits.
Status check_hash(std::string_view hash);

struct Registration {
  std::string name = {};
  std::string version = {};
  std::string hardware = {};  ///< one line for people
  std::string probe = "{}";   ///< JSON
};
core::Fields fields_of(const Registration*);

/// An attempt at a job.
struct Attempt {
  std::int64_t job = 0;
  std::int64_t attempt = 0;
};
core::Fields fields_of(const Attempt*);

struct Heartbeat {
  std::vector<Attempt> running = {};
  std::string serving = "{}";  ///< JSON
};
core::Fields fields_of(const Heartbeat*);

struct HeartbeatReply {
  std::vector<std::int64_t> cancel = {};
  std::int64_t waiting = 0;
  double lease_s = 60;
};
core::Fields fields_of(const HeartbeatReply*);

struct JobLimits {
  double seconds = 600;
  std::int64_t memory_bytes = 0;  ///< 0: none
};
core::Fields fields_of(const JobLimits*);

/// How a board is set up for a measurement; what is absent is the device's default.
struct Settings {
  std::string runtime = "auto";
  int threads = 1;
  std::string cores = {};
  std::string precision = "fp32";
  std::optional<int> cpu_quota_percent = std::nullopt;
  std::string memory_limit = {};
};
core::Fields fields_of(const Settings*);

struct ProbeJob {
  double seconds = 10;
};
core::Fields fields_of(const ProbeJob*);
struct MeasureJob {
  std::string model = {};  ///< hash of its file
  std::string name = {};   ///< the file's, for people and for its format
  Settings settings = {};
  std::string as = {};  ///< the part of the device's name that says these settings; may be empty
  std::string space = {};
  std::string design = {};
  bool operators = false;
  double max_time_s = 10;
  double target_ci_percent = 2;
};
core::Fields fields_of(const MeasureJob*);
struct ProfileJob {
  std::string bundle = {};
  int threads = 1;
};
core::Fields fields_of(const ProfileJob*);
struct AdaptJob {
  std::string bundle = {};
  std::string data = {};
  double budget_ms = 0;
  std::string strategy = "guided";
};
core::Fields fields_of(const AdaptJob*);
struct RunJob {
  std::string bundle = {};
  std::string pool = {};  ///< hash; empty: the one that the device has found itself
  std::string data = {};
  double budget_ms = 0;
  double seconds = 60;
};
core::Fields fields_of(const RunJob*);
struct DeployJob {
  std::string bundle = {};
  std::string pool = {};
};
core::Fields fields_of(const DeployJob*);
using JobRequest = std::variant<ProbeJob, MeasureJob, ProfileJob, AdaptJob, RunJob, DeployJob>;

/// "probe", "measure", …
std::string_view kind_of(const JobRequest& request);
/// The request of that kind; also names a kind that there is not.
Result<JobRequest> parse_request(std::string_view kind, const core::JsonView& request);
nlohmann::ordered_json to_json(const JobRequest& request);
/// Hashes of all files that it needs.
std::vector<std::string> files_of(const JobRequest& request);

/// A job as an agent gets it.
struct Assignment {
  Attempt attempt = {};
  JobRequest request = {};
  JobLimits limits = {};
  double lease_s = 60;
};
core::Fields fields_of(const Assignment*);

/// How an attempt has ended.
struct Outcome {
  Attempt attempt = {};
  bool finished = false;
  std::string reason = {};    ///< if it has failed
  std::string result = "{}";  ///< JSON
};
core::Fields fields_of(const Outcome*);

struct Event {
  std::int64_t sequence = 0;  ///< 1, 2, … of this agent
  std::string time = {};      ///< ISO 8601
  std::string kind = {};
  std::optional<std::int64_t> job = std::nullopt;
  std::string body = "{}";  ///< JSON
};
core::Fields fields_of(const Event*);

Result<Registration> parse_registration(const core::JsonView& message);
Result<Heartbeat> parse_heartbeat(const core::JsonView& message);
Result<HeartbeatReply> parse_heartbeat_reply(const core::JsonView& message);
Result<JobLimits> parse_limits(const core::JsonView& limits);
/// {"jobs":[…]}
Result<std::vector<Assignment>> parse_assignments(const core::JsonView& message);
/// {"results":[…]}
Result<std::vector<Outcome>> parse_outcomes(const core::JsonView& message);
/// {"events":[…]}
Result<std::vector<Event>> parse_events(const core::JsonView& message);

nlohmann::ordered_json to_json(const Registration& registration);
nlohmann::ordered_json to_json(const Heartbeat& heartbeat);
nlohmann::ordered_json to_json(const HeartbeatReply& reply);
nlohmann::ordered_json to_json(const JobLimits& limits);
nlohmann::ordered_json to_json(const std::vector<Assignment>& assignments);
nlohmann::ordered_json to_json(const std::vector<Outcome>& outcomes);
nlohmann::ordered_json to_json(const std::vector<Event>& events);

}  // namespace fleetfit::fleet
