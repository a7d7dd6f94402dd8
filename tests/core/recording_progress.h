#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "fleetfit/core/progress.h"

namespace fleetfit::core {

/// Keeps all events for a test to look at.
class RecordingProgress final : public Progress {
 public:
  struct Event {
    ProgressKind kind;
    std::uint64_t task;
    std::string name;
    std::string unit;
    std::uint64_t done;
    std::uint64_t total;
    std::string text;
  };

  void receive(const ProgressEvent& event) override {
    const std::scoped_lock lock(mutex_);
    events_.push_back({event.kind, event.task, std::string(event.name), std::string(event.unit),
                       event.done, event.total, std::string(event.text)});
  }

  std::vector<Event> events() const {
    const std::scoped_lock lock(mutex_);
    return events_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

}  // namespace fleetfit::core
