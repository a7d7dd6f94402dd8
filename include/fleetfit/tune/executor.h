#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/tune/resources.h"

/// Where workers run. A worker is an ordinary process that takes trials of a study from the store
/// until it is asked to end; local processes here, jobs of a cluster elsewhere.
namespace fleetfit::tune {

struct WorkerSpec {
  std::vector<std::string> command = {};
  std::string name = {};
  std::vector<int> cores = {};  ///< pinned to these; empty: any
};

enum class WorkerState { starting, running, ended };

struct WorkerStatus {
  WorkerState state = WorkerState::starting;
  bool succeeded = false;   ///< it ended by itself, having done all that there was to do
  bool killed = false;      ///< a signal ended it
  std::string ending = {};  ///< "exit status 1: what it said last", "signal 9 (Killed)"
  /// How long it has run, where that differs from the time since it was submitted.
  std::optional<std::chrono::seconds> ran = std::nullopt;
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Gives the worker's handle.
  virtual Result<std::size_t> submit(const WorkerSpec& worker) = 0;
  /// The same for many, in their order.
  virtual Result<std::vector<std::size_t>> submit_all(std::span<const WorkerSpec> workers);
  /// The states of all that were submitted, by handle.
  virtual Result<std::vector<WorkerStatus>> poll() = 0;
  /// Asks a worker to end and to give the trial that it runs back; harmless if it has ended.
  virtual Status cancel(std::size_t worker) = 0;
  virtual Status cancel_all();
};

/// Workers are processes of this machine. Their input stays open as long as the executor lives:
/// they end when it does, even by SIGKILL. Destroying it waits for them.
std::unique_ptr<Executor> make_local_executor();

/// Workers as jobs of a Slurm cluster (docs/slurm.md).
struct SlurmOptions {
  /// Of all its jobs, and of no others: those that a killed predecessor left are cancelled by it.
  std::string job_name = {};
  std::filesystem::path folder = {};  ///< for the jobs' logs; all nodes see it
  Resources resources = {};
  std::size_t most_at_once = 0;  ///< of an array's jobs; 0: as many as the cluster gives
  /// The controller is asked about all jobs together, and not more often.
  std::chrono::milliseconds between_questions{2000};
  /// Hears once that the controller does not answer, and once that it does again. May be empty.
  std::function<void(std::string_view)> say = {};
};

/// All that are submitted together are one job array. A job whose node is lost is started again
/// elsewhere by Slurm. While the controller does not answer, workers keep the states that were
/// known last, and what is to be submitted waits. Destroying it cancels what still runs. The clock
/// is borrowed.
std::unique_ptr<Executor> make_slurm_executor(const core::Clock& clock, SlurmOptions options);

/// What is given to sbatch.
std::string slurm_script(const SlurmOptions& options, std::span<const WorkerSpec> workers);

/// What squeue is asked to tell of each job, a line for each.
inline constexpr std::string_view kSqueueFormat =
    "ArrayJobID:|,ArrayTaskID:|,State:|,TimeUsed:|,Reason:|,exit_code:|";

/// One line of its answer: what has become of a worker.
struct SlurmJob {
  std::string id = {};  ///< "JOB_TASK"
  WorkerStatus status = {};
};
/// Fails with `invalid_input` if it is no such line.
Result<SlurmJob> parse_squeue_line(std::string_view line);

}  // namespace fleetfit::tune
