#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/result.h"
#include "fleetfit/tune/executor.h"

namespace fleetfit::study {

/// The name of this process as a worker: "w1@host:4711".
std::string name_of_this_worker(std::string_view as);

/// Whether the worker was a process of this machine that has ended.
bool has_died_here(std::string_view worker);

/// Keeps a number of workers alive.
class Crew {
 public:
  struct Options {
    std::size_t workers = 1;
    std::vector<std::string> command = {};     ///< `--as NAME` is added
    std::vector<std::vector<int>> cores = {};  ///< of each worker; empty: not pinned
  };

  /// Executor and clock are borrowed.
  Crew(tune::Executor& executor, const core::Clock& clock, Options options);

  /// Starts those that are missing. Fails if workers cannot be started, or end again and again
  /// without having been killed.
  Status look_after();

  /// Asks all to end, and waits for it.
  void dismiss(std::chrono::milliseconds timeout);

 private:
  struct Place {
    std::optional<std::size_t> worker = std::nullopt;
    std::chrono::nanoseconds since{0};
  };

  Status replace(const std::vector<std::size_t>& places);
  Status note_end(const Place& place, const tune::WorkerStatus& status);

  tune::Executor& executor_;
  const core::Clock& clock_;
  Options options_;
  std::vector<Place> places_;
  std::size_t started_ = 0;
  std::size_t quick_failures_ = 0;
};

/// Cores for so many workers: each has its own as far as they go, and else they take turns. Empty
/// for one worker, which may use all.
std::vector<std::vector<int>> share_cores(const std::vector<int>& cores, std::size_t workers);

/// Those that this process may use.
std::vector<int> available_cores();

}  // namespace fleetfit::study
