#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fleetfit/core/clock.h"
#include "fleetfit/tune/executor.h"
#include "fleetfit/tune/resources.h"

/// Workers as jobs of a Slurm cluster (docs/slurm.md).
namespace fleetfit::tune {

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
