#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

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

}  // namespace fleetfit::tune
