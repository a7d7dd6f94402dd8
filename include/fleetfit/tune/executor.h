#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

/// Where workers run. A worker is an ordinary process that takes trials of a study from the store
/// until it is told to end; local processes here, jobs of a cluster elsewhere.
namespace fleetfit::tune {

struct WorkerSpec {
  std::vector<std::string> command = {};
  std::string name = {};
  std::vector<int> cores = {};  ///< pinned to these; empty: any
};

enum class WorkerState { starting, running, ended };

struct WorkerStatus {
  WorkerState state = WorkerState::starting;
  std::string ending = {};  ///< how it ended: "exit status 1", "signal 9 (Killed)"
};

class Executor {
 public:
  virtual ~Executor() = default;

  /// Gives the worker's handle.
  virtual Result<std::size_t> submit(const WorkerSpec& worker) = 0;
  /// The states of all that were submitted, by handle.
  virtual Result<std::vector<WorkerStatus>> poll() = 0;
  /// Ends a worker and the trial that it runs; harmless if it has ended.
  virtual Status cancel(std::size_t worker) = 0;
};

/// Workers are processes of this machine; they end with the executor.
std::unique_ptr<Executor> make_local_executor();

}  // namespace fleetfit::tune
