#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"
#include "fleetfit/tune/executor.h"
#include "fleetfit/tune/patience.h"

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

/// The right to decide for a study. On one machine a locked file says who has it, so that the
/// successor of a process that was killed need not wait; between machines a lease in the store,
/// which a thread renews.
class StudyLead {
 public:
  struct Wish {
    std::string study = {};
    std::filesystem::path folder = {};  ///< of the study; is there
    std::chrono::milliseconds lease{10'000};
    tune::PatienceOptions patience = {};
  };

  /// Waits for a lease of another machine to run out, saying so. Fails with `invalid_input` if
  /// another process tunes the study.
  static Result<std::unique_ptr<StudyLead>> take(store::StudyStore& store, const core::Clock& clock,
                                                 Wish wish,
                                                 const std::function<void(std::string_view)>& say,
                                                 const std::stop_token& stop);
  StudyLead(const StudyLead&) = delete;
  StudyLead& operator=(const StudyLead&) = delete;
  /// Gives it back.
  ~StudyLead();

  /// Another machine has taken it, because this one was silent for too long.
  bool is_lost() const { return is_lost_; }

 private:
  StudyLead(store::StudyStore& store, const core::Clock& clock, Wish wish,
            core::FileDescriptor lock);
  Result<bool> renew(std::chrono::milliseconds length);
  void keep(const std::stop_token& end);

  store::StudyStore& store_;
  const core::Clock& clock_;
  Wish wish_;
  std::string name_;
  core::FileDescriptor lock_;
  std::atomic<bool> is_lost_ = false;
  std::jthread thread_;
};

}  // namespace fleetfit::study
