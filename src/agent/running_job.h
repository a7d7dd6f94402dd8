#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/spool.h"
#include "fleetfit/agent/agent.h"
#include "fleetfit/core/clock.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::agent {

/// A job whose process runs: its lines are taken, its limits are watched. Belongs to one thread.
class RunningJob {
 public:
  RunningJob(fleet::Assignment assignment, std::filesystem::path folder,
             std::unique_ptr<JobProcess> process, const core::Clock& clock);

  /// Takes what the process has written and sees to its limits; gives the outcome when it is there.
  /// `on_event` gets what the job reports meanwhile.
  std::optional<fleet::Outcome> look(const std::function<void(NewEvent)>& on_event, const Log& log);

  /// Ends the process; the job has then failed for this reason.
  void stop(std::string reason);

  const fleet::Attempt& attempt() const { return assignment_.attempt; }
  const std::filesystem::path& folder() const { return folder_; }
  /// What it serves now, as JSON; "{}" if nothing.
  const std::string& serving() const { return serving_; }

 private:
  void take_line(const std::string& line, const std::function<void(NewEvent)>& on_event,
                 const Log& log);
  Status take_message(const core::JsonView& message, const std::function<void(NewEvent)>& on_event);
  void note_serving(const std::string& body);
  void watch_limits();
  fleet::Outcome outcome_of(const ProcessEnd& end) const;
  fleet::Outcome failed(std::string reason) const;

  fleet::Assignment assignment_;
  std::filesystem::path folder_;
  std::unique_ptr<JobProcess> process_;
  const core::Clock& clock_;
  std::chrono::nanoseconds begun_;  // the files are fetched, and then the work
  bool works_ = false;
  std::chrono::nanoseconds memory_looked_at_{};
  std::optional<fleet::Outcome> outcome_ = std::nullopt;
  std::string stop_reason_ = {};
  std::string serving_ = "{}";
};

/// "2026-11-16T08:00:00.123Z"
std::string time_text(std::chrono::system_clock::time_point time);

}  // namespace fleetfit::agent
