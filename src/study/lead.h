#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/result.h"
#include "fleetfit/store/study_store.h"
#include "fleetfit/tune/patience.h"

namespace fleetfit::study {

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
