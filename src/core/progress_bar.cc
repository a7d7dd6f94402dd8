#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <vector>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/program.h"
#include "fleetfit/core/progress.h"

namespace fleetfit::core {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kRedrawInterval = std::chrono::milliseconds(100);
constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr std::size_t kBarWidth = 24;

// No more than `width` characters of UTF-8.
std::string_view first_characters(std::string_view text, std::size_t width) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (starts && characters++ == width) return text.substr(0, i);
  }
  return text;
}

std::string clock_text(double seconds) {
  const auto whole = std::llround(std::min(seconds, 359'999.0));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

struct ShownTask {
  std::uint64_t id;
  std::string name;
  std::string unit;
  std::uint64_t done;
  std::uint64_t total;
  nanoseconds started;
};

std::string line_of(const ShownTask& task, nanoseconds now) {
  const double seconds = std::chrono::duration<double>(now - task.started).count();
  const double rate = seconds > 0 ? static_cast<double>(task.done) / seconds : 0;
  std::string line = task.name;
  if (task.total > 0) {
    const double share =
        std::min(1.0, static_cast<double>(task.done) / static_cast<double>(task.total));
    const auto filled = static_cast<std::size_t>(share * kBarWidth);
    line += fmt::format(" [{}{}] {}/{}", std::string(filled, '#'),
                        std::string(kBarWidth - filled, '-'), task.done, task.total);
  } else {
    line += fmt::format(" {}", task.done);
  }
  if (!task.unit.empty()) line += " " + task.unit;
  if (rate > 0) line += fmt::format("  {:.3g}/s", rate);
  if (rate > 0 && task.total > task.done) {
    line += fmt::format("  ETA {}", clock_text(static_cast<double>(task.total - task.done) / rate));
  }
  return line;
}

class ProgressBar final : public Progress {
 public:
  ProgressBar(const Clock& clock, ProgressBarOptions options)
      : clock_(clock), options_(std::move(options)) {}

  ~ProgressBar() override { clear(); }

  void receive(const ProgressEvent& event) override {
    const std::scoped_lock lock(mutex_);
    switch (event.kind) {
      case ProgressKind::started:
        tasks_.push_back({event.task, message_line(event.name), message_line(event.unit), 0,
                          event.total, clock_.now()});
        redraw();
        break;
      case ProgressKind::advanced:
        advance(event);
        break;
      case ProgressKind::message:
        clear();
        options_.write(message_line(event.text) + "\n");
        redraw();
        break;
      case ProgressKind::finished:
        std::erase_if(tasks_, [&](const ShownTask& task) { return task.id == event.task; });
        redraw();
        break;
    }
  }

 private:
  void advance(const ProgressEvent& event) {
    const auto task = std::ranges::find(tasks_, event.task, &ShownTask::id);
    if (task == tasks_.end()) return;
    // Events of several threads may arrive out of order.
    task->done = std::max(task->done, event.done);
    if (clock_.now() - last_draw_ >= kRedrawInterval) redraw();
  }

  void redraw() {
    if (tasks_.empty()) return clear();
    last_draw_ = clock_.now();
    const auto line = line_of(tasks_.back(), last_draw_);
    // The last column stays free: some terminals wrap when it is written.
    const auto width = static_cast<std::size_t>(std::max(2, options_.width) - 1);
    options_.write(fmt::format("{}{}", kClearLine, first_characters(line, width)));
    drawn_ = true;
  }

  void clear() {
    if (drawn_) options_.write(kClearLine);
    drawn_ = false;
  }

  const Clock& clock_;
  ProgressBarOptions options_;
  std::mutex mutex_;
  std::vector<ShownTask> tasks_;
  nanoseconds last_draw_{};
  bool drawn_ = false;
};

// What a terminal refuses is lost: progress must never stop the work.
void write_what_fits(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = retry_interrupted([&] { return ::write(fd, text.data(), text.size()); });
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int width_of_terminal(int fd) {
  winsize size{};
  const bool known = ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : ProgressBarOptions{}.width;
}

class MessageLines final : public Progress {
 public:
  void receive(const ProgressEvent& event) override {
    if (event.kind == ProgressKind::message) fmt::print(stderr, "{}\n", message_line(event.text));
  }
};

}  // namespace

std::unique_ptr<Progress> make_progress_bar(const Clock& clock, ProgressBarOptions options) {
  return std::make_unique<ProgressBar>(clock, std::move(options));
}

std::unique_ptr<Progress> make_terminal_progress(const Clock& clock,
                                                 const TerminalProgressOptions& options) {
  if (options.quiet || ::isatty(options.fd) == 0) return make_silent_progress();
  return make_progress_bar(
      clock, {.write = [fd = options.fd](std::string_view text) { write_what_fits(fd, text); },
              .width = width_of_terminal(options.fd)});
}

std::unique_ptr<Progress> make_progress_for_people(const Clock& clock,
                                                   const ProgressForPeopleOptions& options) {
  if (!options.quiet && ::isatty(STDERR_FILENO) == 0) return std::make_unique<MessageLines>();
  return make_terminal_progress(clock, {.quiet = options.quiet});
}

}  // namespace fleetfit::core
