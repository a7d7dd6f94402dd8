#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/result.h"
#include "fleetfit/fleet/client.h"
#include "fleetfit/fleet/messages.h"

/// The program on a device: takes jobs of a fleet's server, runs each in a process of its own, and
/// keeps on disk what it found until the server has it (docs/agents.md).
namespace fleetfit::agent {

/// What jobs may do, and where files are kept.
struct JobOptions {
  std::filesystem::path state = {};                  ///< the agent's folder
  std::filesystem::path public_key = {};             ///< that must have signed bundles; empty: none
  std::int64_t cache_bytes = std::int64_t{2} << 30;  ///< most for files of jobs
  /// Whether a job may name a program to measure with ("exec:…"): who may send jobs may then run
  /// any program here.
  bool allow_exec = false;
};

struct AgentOptions {
  fleet::Registration registration = {};
  JobOptions jobs = {};
  /// Given to every job's process on its standard input; holds the token. No file has it.
  std::string connection = "{}";
  double heartbeat_s = 10;
  std::uint64_t seed = 1;  ///< of the jitter
};

/// How a job's process has ended.
struct ProcessEnd {
  core::ExitStatus status = {};
  std::string last_words = {};  ///< the last line of its stderr; may be empty
};

/// A job's process. Destroying it ends it and all that it has started.
class JobProcess {
 public:
  virtual ~JobProcess() = default;

  /// A line that it has written, if there is one; does not wait.
  virtual std::optional<std::string> read_line() = 0;
  /// How it has ended, once all lines are read; does not wait.
  virtual std::optional<ProcessEnd> ended() = 0;
  /// Of it and all that it has started.
  virtual std::int64_t memory_bytes() = 0;
  /// Ends it and all that it has started.
  virtual void kill() = 0;
};

class JobProcesses {
 public:
  virtual ~JobProcesses() = default;

  /// `folder` holds `job.json`; `input` is a line for the process.
  virtual Result<std::unique_ptr<JobProcess>> start(const std::filesystem::path& folder,
                                                    const std::string& input) = 0;
};

/// Processes of `program job FOLDER`. What a job leaves running is ended with it.
std::unique_ptr<JobProcesses> make_job_processes(std::filesystem::path program);

/// Gets a line for people; never a secret.
using Log = std::function<void(std::string_view)>;

/// The agent's work, step by step. Belongs to one thread.
class Agent {
 public:
  virtual ~Agent() = default;

  /// Does what is due: looks after the job, sends, asks. Waits for nothing but the server's
  /// answers.
  virtual void step() = 0;

  /// When there is something to do again, at the latest.
  virtual std::chrono::nanoseconds next_step() const = 0;
};

/// Takes up what an earlier agent left in the state folder: results and events that the server has
/// not got are sent; jobs that ran are forgotten, so that the server gives them out again when
/// their leases end. All but the options is borrowed. Fails with `invalid_input` if another agent
/// uses the folder, with `io` if it cannot be used.
Result<std::unique_ptr<Agent>> open_agent(AgentOptions options, fleet::Client& server,
                                          JobProcesses& processes, const core::Clock& clock,
                                          Log log);

/// Steps until it is stopped.
void run_agent(Agent& agent, const core::Clock& clock, const std::stop_token& stop);

/// What `fleetfit-agent job FOLDER` does: reads `job.json`, gets the files that the job needs, does
/// it, and writes lines of JSON: {"line": "started"}, {"line": "event", "kind", "body"} and at the
/// end {"line": "outcome", "finished", "reason", "result"}.
Status do_job(const std::filesystem::path& folder, std::string_view connection,
              const core::Clock& clock, const std::function<void(std::string_view)>& write_line,
              const std::stop_token& stop);

/// What a job's process gets on its standard input, and back.
std::string connection_text(const fleet::ClientOptions& options);
Result<fleet::ClientOptions> parse_connection(std::string_view text);

}  // namespace fleetfit::agent
