#include <chrono>
#include <nlohmann/json.hpp>

#include "agent/job_place.h"
#include "fleetfit/core/json.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostMessage = 2000;

class EventProgress final : public core::Progress {
 public:
  EventProgress(Reporter& reporter, const core::Clock& clock)
      : reporter_(reporter), clock_(clock) {}

  void receive(const core::ProgressEvent& event) override {
    if (event.kind == core::ProgressKind::message) {
      reporter_.event("log", {{"message", event.text.substr(0, kMostMessage)}});
    } else if (event.kind == core::ProgressKind::advanced && is_due()) {
      nlohmann::json body = {{"name", event.name}, {"unit", event.unit}, {"done", event.done}};
      if (event.total > 0) body["total"] = event.total;
      reporter_.event("progress", body);
    }
  }

 private:
  bool is_due() {
    const std::scoped_lock lock(mutex_);
    const auto now = clock_.now();
    if (last_ && now - *last_ < 1s) return false;
    last_ = now;
    return true;
  }

  Reporter& reporter_;
  const core::Clock& clock_;
  std::mutex mutex_;
  std::optional<std::chrono::nanoseconds> last_ = std::nullopt;
};

}  // namespace

void Reporter::report(const nlohmann::json& message) {
  const auto line = core::format_json_line(message);
  const std::scoped_lock lock(mutex_);
  write_line_(line);
}

void Reporter::event(std::string_view kind, const nlohmann::json& body) {
  report({{"line", "event"}, {"kind", kind}, {"body", body}});
}

std::unique_ptr<core::Progress> make_event_progress(Reporter& reporter, const core::Clock& clock) {
  return std::make_unique<EventProgress>(reporter, clock);
}

}  // namespace fleetfit::agent
