#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fleetfit/store/records.h"

/// What a server keeps of a fleet. Plain values, as in records.h.
namespace fleetfit::store {

enum class Role : std::uint8_t {
  admin,   ///< may do everything
  viewer,  ///< sees everything but tokens and audit
  agent,   ///< a device: sees its own jobs alone
};

/// "admin", "viewer" or "agent".
core::Names names_of(Role);

/// How many devices a token that is bound to none may register, if nobody has said another number.
inline constexpr std::int64_t kDevicesOfToken = 100;

/// A token, without its secret.
struct TokenRecord {
  std::int64_t id = 0;  ///< given by the store
  std::string name = {};
  Role role = Role::viewer;
  std::string hash = {};    ///< SHA-256 of the secret, 64 small hex digits; there is one of a hash
  std::string device = {};  ///< the only device that an agent may be; empty: any
  Time created = {};
  std::optional<Time> expires = {};
  std::optional<Time> revoked = {};
  /// How many devices an agent may register by it, if it is bound to none.
  std::int64_t devices = kDevicesOfToken;

  bool operator==(const TokenRecord&) const = default;
};
core::Fields fields_of(const TokenRecord*);

/// A device on which an agent runs, or is expected to.
struct AgentRecord {
  std::string name = {};       ///< not empty; there is one agent of a name
  std::string version = {};    ///< of its program; empty until it has registered
  std::string hardware = {};   ///< one line for people
  std::string probe = "{}";    ///< JSON: what it has said of itself
  std::string serving = "{}";  ///< JSON: what it serves now, from its heartbeats
  Time created = {};
  std::optional<Time> last_seen = {};
  std::int64_t token = 0;  ///< by which it was registered first; 0: it was added otherwise

  bool operator==(const AgentRecord&) const = default;
};
core::Fields fields_of(const AgentRecord*);

enum class JobState : std::uint8_t { waiting, running, finished, failed, cancelled };

/// "waiting", "running", …
core::Names names_of(JobState);

/// A piece of work for one device.
struct JobRecord {
  std::int64_t id = 0;         ///< given by the store; never used twice
  std::string agent = {};      ///< the device's name; not empty
  std::string kind = {};       ///< "measure", "adapt", …
  std::string request = "{}";  ///< JSON
  std::string limits = "{}";   ///< JSON
  std::string key = {};        ///< if not empty, there is one job of this key
  JobState state = JobState::waiting;
  std::string reason = {};   ///< why it has failed or was cancelled, then not empty; or waits again
  std::int64_t attempt = 0;  ///< how often it was claimed
  std::int64_t most_attempts = 3;
  std::optional<Time> lease = {};  ///< until when it is the agent's; there while it runs
  bool cancel_requested = false;
  std::string result = "{}";  ///< JSON
  Time created = {};
  std::optional<Time> started = {};  ///< the newest attempt
  std::optional<Time> ended = {};

  bool operator==(const JobRecord&) const = default;
};
core::Fields fields_of(const JobRecord*);

/// Something that happened.
struct EventRecord {
  std::int64_t id = 0;        ///< given by the store; later ones have higher ids
  std::string agent = {};     ///< empty: the server itself
  std::int64_t sequence = 0;  ///< of the agent, from 1; 0: the server's own
  std::optional<std::int64_t> job = {};
  std::string kind = {};                 ///< "switch", "latency", "job", "device", "log", …
  std::string body = "{}";               ///< JSON
  Time time = {};                        ///< when the server got it
  std::optional<Time> device_time = {};  ///< when it happened, by the clock of its agent

  bool operator==(const EventRecord&) const = default;
};
core::Fields fields_of(const EventRecord*);

/// A file that jobs need, known by its content; the octets are not in the store.
struct FileRecord {
  std::string hash = {};  ///< SHA-256, 64 small hex digits
  std::string name = {};
  std::string kind = {};  ///< "onnx", "bundle", "pool", "key", "data"
  std::int64_t bytes = 0;
  Time created = {};

  bool operator==(const FileRecord&) const = default;
};
core::Fields fields_of(const FileRecord*);

/// Who did what.
struct AuditRecord {
  std::int64_t id = 0;      ///< given by the store
  std::int64_t token = 0;   ///< 0: nobody was signed in
  std::string name = {};    ///< the token's
  std::string action = {};  ///< "token.create", "job.cancel", …
  std::string detail = {};  ///< never a secret
  Time time = {};

  bool operator==(const AuditRecord&) const = default;
};
core::Fields fields_of(const AuditRecord*);

}  // namespace fleetfit::store
