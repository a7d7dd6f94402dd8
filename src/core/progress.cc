#include "fleetfit/core/progress.h"

#include "fleetfit/core/names.h"

namespace fleetfit::core {
namespace {

class SilentProgress final : public Progress {
 public:
  void receive(const ProgressEvent&) override {}
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

}  // namespace fleetfit::core
