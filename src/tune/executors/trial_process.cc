#include "fleetfit/tune/trial_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/program.h"
#include "tune/executors/checkpoint_lock.h"
#include "tune/executors/supervised_process.h"
#include "tune/executors/trial_log.h"
#include "tune/executors/trial_messages.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Becomes readable when a stop is asked for, so that nobody has to look again and again.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop) : callback_(stop, Raise{event_.get()}) {}

  int descriptor() const { return event_.get(); }

 private:
  struct Raise {
    int fd;
    void operator()() const {
      const std::uint64_t one = 1;
      static_cast<void>(!::write(fd, &one, sizeof one));
    }
  };

  core::FileDescriptor event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::stop_callback<Raise> callback_;  // gone before the event is closed
};

// Cuts a stream into lines. Of one that is too long nothing but that is kept.
class Lines {
 public:
  explicit Lines(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  template <class Take>
  void add(std::string_view bytes, const Take& take) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      const auto part = bytes.substr(0, end);
      too_long_ = too_long_ || pending_.size() + part.size() > max_bytes_;
      if (!too_long_) pending_ += part;
      bytes.remove_prefix(part.size());
      if (end == std::string_view::npos) return;
      bytes.remove_prefix(1);
      finish(take);
    }
  }

  /// A last line may lack its end.
  template <class Take>
  void finish(const Take& take) {
    if (!pending_.empty()) take(std::string_view(pending_));
    pending_.clear();
  }

  bool saw_too_long() const { return too_long_; }

 private:
  std::size_t max_bytes_;
  std::string pending_;
  bool too_long_ = false;
};

std::string with_log(std::string reason, const TrialLog& log) {
  const auto end = log.end();
  return core::one_line(end.empty() ? std::move(reason) : fmt::format("{}: {}", reason, end));
}

// Relative names are looked for in the checkpoint folder and then where the trial was started.
std::string found_model(const TrialJob& job, const std::string& name) {
  if (name.empty()) return name;
  std::error_code ignored;
  const auto inside = job.checkpoint_folder / name;
  if (std::filesystem::exists(inside, ignored))
    return std::filesystem::absolute(inside, ignored).string();
  return std::filesystem::absolute(name, ignored).string();
}

class RunningTrial {
 public:
  RunningTrial(const TrialJob& job, const TrialListener& listener,
               const TrialProcessOptions& options, SupervisedProcess& process, TrialLog& log)
      : job_(job),
        listener_(listener),
        options_(options),
        process_(process),
        log_(log),
        output_(options.max_line_bytes) {}

  TrialOutcome run(const std::stop_token& stop) {
    const StopSignal stop_signal(stop);
    if (job_.timeout_s > 0) deadline_ = began_ + seconds(job_.timeout_s);
    while (!wait(stop_signal)) {
      if (stop.stop_requested() && !ending_) begin_to_end(Cause::stopped);
      if (deadline_ && steady_clock::now() >= *deadline_) run_out_of_time();
      if (output_.saw_too_long() && cause_ == Cause::none) {
        cause_ = Cause::line_too_long;
        process_.kill();
      }
    }
    const auto end = process_.collect();
    while (read_some(process_.output()) || read_some(process_.errors())) {
    }
    output_.finish([this](std::string_view line) { take_line(line); });
    return outcome(end);
  }

 private:
  enum class Cause { none, stopped, timeout, lingering, line_too_long };

  static steady_clock::duration seconds(double value) {
    constexpr double kLongest = 1e9;
    return std::chrono::duration_cast<steady_clock::duration>(
        std::chrono::duration<double>(std::min(value, kLongest)));
  }

  void begin_to_end(Cause cause) {
    cause_ = cause;
    ending_ = true;
    deadline_ = steady_clock::now() + options_.grace;
    process_.ask_to_end();
  }

  void run_out_of_time() {
    if (ending_) {
      process_.kill();
      deadline_.reset();
    } else {
      begin_to_end(result_ ? Cause::lingering : Cause::timeout);
    }
  }

  int milliseconds_left() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*deadline_ - steady_clock::now());
    return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }

  // True when it has ended.
  bool wait(const StopSignal& stop_signal) {
    const bool watch_stop = !ending_;
    std::array<pollfd, 4> polled = {{{output_open_ ? process_.output() : -1, POLLIN, 0},
                                     {errors_open_ ? process_.errors() : -1, POLLIN, 0},
                                     {process_.end_signal(), POLLIN, 0},
                                     {watch_stop ? stop_signal.descriptor() : -1, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), milliseconds_left());
    if (polled[0].revents != 0) output_open_ = read_some(process_.output());
    if (polled[1].revents != 0) errors_open_ = read_some(process_.errors());
    return polled[2].revents != 0;
  }

  // False if there is nothing more.
  bool read_some(int fd) {
    std::array<char, 65'536> buffer;
    const auto got = ::read(fd, buffer.data(), buffer.size());
    if (got <= 0) return false;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    if (fd == process_.errors()) {
      log_.add(bytes);
    } else {
      output_.add(bytes, [this](std::string_view line) { take_line(line); });
    }
    return true;
  }

  void take_line(std::string_view line) {
    std::visit([&](auto message) { take(line, std::move(message)); }, parse_trial_line(line));
  }

  void take(std::string_view line, LogLine /*message*/) { log_.add(fmt::format("{}\n", line)); }
  void take(std::string_view /*line*/, const EpochReport& message) {
    epochs_.push_back(message);
    if (listener_.on_epoch) listener_.on_epoch(message);
  }
  void take(std::string_view /*line*/, const ModelMessage& message) {
    if (listener_.on_model) listener_.on_model(found_model(job_, message.file));
  }
  void take(std::string_view /*line*/, const ProgressMessage& message) {
    if (listener_.on_progress) listener_.on_progress(message.text);
  }
  void take(std::string_view /*line*/, ResultMessage message) {
    result_ = std::move(message);
    wrong_.clear();
    if (!ending_) deadline_ = steady_clock::now() + options_.linger;
  }
  void take(std::string_view line, WrongMessage message) {
    wrong_ = std::move(message.reason);
    log_.add(fmt::format("{}\n", line));
  }

  std::string failure(const SupervisedEnd& end) const {
    if (!end.start_error.empty())
      return fmt::format("cannot start {}: {}", job_.command[0], end.start_error);
    if (cause_ == Cause::line_too_long)
      return fmt::format("it printed a line of more than {} bytes", options_.max_line_bytes);
    if (cause_ == Cause::timeout)
      return with_log(fmt::format("it took longer than {:g} s", job_.timeout_s), log_);
    if (cause_ == Cause::lingering) return with_log("it gave its result and did not end", log_);
    if (!end.status.succeeded()) {
      const bool maybe_memory = end.status.signal == 9 && job_.memory_bytes;
      return with_log(fmt::format("{}{}", to_string(end.status),
                                  maybe_memory ? fmt::format(" (it may have {} bytes of memory)",
                                                             *job_.memory_bytes)
                                               : ""),
                      log_);
    }
    if (!wrong_.empty()) return with_log(wrong_, log_);
    return result_ ? "" : with_log("it ended without a result", log_);
  }

  TrialOutcome outcome(const SupervisedEnd& end) const {
    TrialOutcome result;
    result.elapsed_s = std::chrono::duration<double>(steady_clock::now() - began_).count();
    result.cpu_s = end.cpu_s;
    constexpr int kShellsWordForIt = 128 + SIGTERM;
    result.was_told_to_end = end.status.signal == SIGTERM || end.status.code == kShellsWordForIt;
    result.epochs = epochs_;
    result.reason = failure(end);
    if (result.reason.empty()) {
      result.end = TrialOutcome::End::finished;
      result.accuracy = result_->accuracy;
      result.loss = result_->loss;
      result.other = result_->other;
      result.model_file = found_model(job_, result_->model_file);
    } else if (cause_ == Cause::stopped) {
      result.end = TrialOutcome::End::stopped;
      result.reason = "it was stopped";
    } else if (cause_ == Cause::none && !end.is_known && end.start_error.empty()) {
      // Not the trial's fault: somebody killed one of our own processes.
      result.end = TrialOutcome::End::stopped;
      result.reason = "the process that watches over it was killed";
    }
    return result;
  }

  const TrialJob& job_;
  const TrialListener& listener_;
  const TrialProcessOptions& options_;
  SupervisedProcess& process_;
  TrialLog& log_;
  Lines output_;
  bool output_open_ = true;
  bool errors_open_ = true;
  steady_clock::time_point began_ = steady_clock::now();
  std::optional<steady_clock::time_point> deadline_;
  bool ending_ = false;
  Cause cause_ = Cause::none;
  std::vector<EpochReport> epochs_;
  std::optional<ResultMessage> result_;
  std::string wrong_;
};

Status create_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::io,
                fmt::format("{}: cannot be created: {}", folder.string(), error.message()));
  return {};
}

}  // namespace

Result<TrialOutcome> run_trial(const TrialJob& job, const TrialListener& listener,
                               const std::stop_token& stop, const TrialProcessOptions& options) {
  FLEETFIT_ASSIGN(auto document, trial_document(job));
  FLEETFIT_TRY(create_folder(job.checkpoint_folder));
  FLEETFIT_ASSIGN(auto log, TrialLog::open(job.log, options.max_log_bytes));
  FLEETFIT_ASSIGN(auto lock, CheckpointLock::take(job.checkpoint_folder,
                                                  {.attempt = job.attempt, .worker = job.worker},
                                                  options.grace + milliseconds(2000), stop));
  FLEETFIT_ASSIGN(auto process,
                  SupervisedProcess::start({.argv = job.command,
                                            .environment = {{"FLEETFIT_TRIAL", document}},
                                            .cores = job.cores,
                                            .memory_bytes = job.memory_bytes,
                                            .lock = lock.descriptor().get()}));
  if (process.group() > 0) {
    // Without it a successor could not kill what this one leaves; it would wait for it to end.
    FLEETFIT_TRY(lock.record_group(process.group()));
  }
  return RunningTrial(job, listener, options, process, log).run(stop);
}

}  // namespace fleetfit::tune
