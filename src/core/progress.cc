#include "fleetfit/core/progress.h"

#include <mutex>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/core/names.h"

namespace fleetfit::core {
namespace {

class SilentProgress final : public Progress {
 public:
  void receive(const ProgressEvent&) override {}
};

class JsonProgress final : public Progress {
 public:
  explicit JsonProgress(std::function<void(std::string_view)> write_line)
      : write_line_(std::move(write_line)) {}

  void receive(const ProgressEvent& event) override {
    nlohmann::json line = {{"event", to_string(event.kind)},
                           {"task", event.task},
                           {"name", event.name},
                           {"unit", event.unit},
                           {"done", event.done},
                           {"total", nullptr}};
    if (event.total > 0) line["total"] = event.total;
    if (event.kind == ProgressKind::message) line["text"] = event.text;
    const auto text = format_json_line(line);
    const std::scoped_lock lock(mutex_);
    write_line_(text);
  }

 private:
  std::mutex mutex_;
  std::function<void(std::string_view)> write_line_;
};

}  // namespace

std::string_view to_string(ProgressKind kind) {
  static constexpr Name kAll[] = {{ProgressKind::started, "started"},
                                  {ProgressKind::advanced, "advanced"},
                                  {ProgressKind::message, "message"},
                                  {ProgressKind::finished, "finished"}};
  return Names{.all = kAll}.of(static_cast<std::int64_t>(kind));
}

ProgressTask::ProgressTask(Progress& sink, ProgressTaskOptions options)
    : sink_(sink), options_(std::move(options)), id_(sink.tasks_++) {
  send(ProgressKind::started, 0);
}

ProgressTask::~ProgressTask() { send(ProgressKind::finished, done_); }

void ProgressTask::advance(std::uint64_t units) {
  const std::uint64_t before = done_.fetch_add(units);
  send(ProgressKind::advanced, before + units);
}

void ProgressTask::message(std::string_view text) { send(ProgressKind::message, done_, text); }

void ProgressTask::send(ProgressKind kind, std::uint64_t done, std::string_view text) {
  sink_.receive({.kind = kind,
                 .task = id_,
                 .name = options_.name,
                 .unit = options_.unit,
                 .done = done,
                 .total = options_.total,
                 .text = text});
}

std::unique_ptr<Progress> make_silent_progress() { return std::make_unique<SilentProgress>(); }

std::unique_ptr<Progress> make_json_progress(std::function<void(std::string_view)> write_line) {
  return std::make_unique<JsonProgress>(std::move(write_line));
}

}  // namespace fleetfit::core
