#include "fleetfit/tune/trial_process.h"
#include "fleetfit/core/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/line_splitter.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/program.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/limits.h"
#include "tune/executors/checkpoint_lock.h"
#include "tune/executors/trial_messages.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kTailBytes = 4096;
constexpr std::size_t kShownBytes = 300;

// How many bytes of a UTF-8 character begin the text; 0 if none does.
std::size_t character_bytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80U) return 0;
    code = code << 6 | (next & 0x3fU);
  }
  const bool is_too_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  const bool is_none = (code >= 0xd800 && code < 0xe000) || code > 0x10ffff;
  return is_too_long || is_none ? 0 : size;
}

// Programs print anything; records hold UTF-8 alone.
std::string as_utf8(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto size = character_bytes(text);
    if (size == 0) {
      result += '?';
    } else {
      result += text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return result;
}

/// The log of a trial: a file that lines are appended to, up to a limit, and its end for people.
class TrialLog {
 public:
  /// Fails with `io` if the file cannot be written.
  static Result<TrialLog> open(const std::filesystem::path& file, std::size_t max_bytes);

  void add(std::string_view text);

  /// Its last lines as one; empty if nothing was logged.
  std::string end() const;

 private:
  TrialLog(core::FileDescriptor file, std::size_t max_bytes)
      : file_(std::move(file)), room_(max_bytes) {}

  core::FileDescriptor file_;
  std::size_t room_ = 0;
  std::string tail_;
};

Result<TrialLog> TrialLog::open(const std::filesystem::path& file, std::size_t max_bytes) {
  const auto name = file.empty() ? std::filesystem::path("/dev/null") : file;
  core::FileDescriptor opened(
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!opened.is_open())
    return fail(ErrorCode::io, fmt::format("{}: cannot be written: {}", name.string(),
                                           core::system_message(errno)));
  return TrialLog(std::move(opened), max_bytes);
}

// A log that cannot be written, as on a full disk, is no reason to lose a training.
void TrialLog::add(std::string_view text) {
  tail_ += text;
  if (tail_.size() > 2 * kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  if (room_ == 0) return;
  std::string kept(text.substr(0, room_));
  room_ -= kept.size();
  if (room_ == 0) kept += "\n(the rest is not kept)\n";
  static_cast<void>(core::write_all(file_, kept));
}

std::string TrialLog::end() const {
  std::string text = tail_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.size() > kShownBytes) {
    const auto line = text.find('\n', text.size() - kShownBytes);
    const bool whole_line = line != std::string::npos && line + 1 < text.size();
    text.erase(0, whole_line ? line + 1 : text.size() - kShownBytes);
  }
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 3)
    text.replace(at, 1, " | ");
  return core::one_line(as_utf8(text));
}

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

// A control group counts the memory of all processes together; where there is none, each gets a
// limit of its own. A machine that allows neither runs the trial with any memory.
std::optional<measure::AppliedLimits> limit_memory(int pid, std::int64_t bytes) {
  measure::Device device{.name = "trial"};
  device.limits.memory_bytes = bytes;
  if (auto applied = measure::apply_limits(pid, device)) return *std::move(applied);
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  ::prlimit(pid, RLIMIT_DATA, &limit, nullptr);
  return std::nullopt;
}

class RunningTrial {
 public:
  RunningTrial(const TrialJob& job, const TrialListener& listener,
               const TrialProcessOptions& options, TrialLog& log)
      : job_(job),
        listener_(listener),
        options_(options),
        log_(log),
        output_(options.max_line_bytes) {}

  void take_output(std::string_view bytes) {
    output_.add(bytes);
    while (const auto line = output_.next()) take_line(*line);
  }

  TrialOutcome run(core::Process& process, const std::stop_token& stop) {
    if (job_.timeout_s > 0) deadline_ = began_ + seconds(job_.timeout_s);
    std::optional<core::ExitStatus> status;
    while (!(status = process.listen(time_left(), ending_ ? std::stop_token() : stop))) {
      if (stop.stop_requested() && !ending_) begin_to_end(process, Cause::stopped);
      if (deadline_ && steady_clock::now() >= *deadline_) run_out_of_time(process);
      if ((saw_too_long_ || output_.runs_over()) && cause_ == Cause::none) {
        cause_ = Cause::line_too_long;
        process.kill();
      }
    }
    if (const auto line = output_.rest()) take_line(*line);
    return outcome(process, *status);
  }

 private:
  enum class Cause { none, stopped, timeout, lingering, line_too_long };

  static steady_clock::duration seconds(double value) {
    constexpr double kLongest = 1e9;
    return std::chrono::duration_cast<steady_clock::duration>(
        std::chrono::duration<double>(std::min(value, kLongest)));
  }

  void begin_to_end(core::Process& process, Cause cause) {
    cause_ = cause;
    ending_ = true;
    deadline_ = steady_clock::now() + options_.grace;
    process.ask_to_end();
  }

  void run_out_of_time(core::Process& process) {
    if (ending_) {
      process.kill();
      deadline_.reset();
    } else {
      begin_to_end(process, result_ ? Cause::lingering : Cause::timeout);
    }
  }

  milliseconds time_left() const {
    constexpr milliseconds kLong{60'000};
    if (!deadline_) return kLong;
    return std::clamp(std::chrono::ceil<milliseconds>(*deadline_ - steady_clock::now()),
                      milliseconds(0), kLong);
  }

  void take_line(const core::LineSplitter::Line& line) {
    saw_too_long_ = saw_too_long_ || line.too_long;
    if (!line.text.empty()) take_line(line.text);
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

  std::string failure(const core::ExitStatus& status) const {
    if (cause_ == Cause::line_too_long)
      return fmt::format("it printed a line of more than {} bytes", options_.max_line_bytes);
    if (cause_ == Cause::timeout)
      return with_log(fmt::format("it took longer than {:g} s", job_.timeout_s), log_);
    if (cause_ == Cause::lingering) return with_log("it gave its result and did not end", log_);
    if (!status.succeeded()) {
      const bool maybe_memory = status.signal == 9 && job_.memory_bytes;
      return with_log(fmt::format("{}{}", to_string(status),
                                  maybe_memory ? fmt::format(" (it may have {} bytes of memory)",
                                                             *job_.memory_bytes)
                                               : ""),
                      log_);
    }
    if (!wrong_.empty()) return with_log(wrong_, log_);
    return result_ ? "" : with_log("it ended without a result", log_);
  }

  TrialOutcome outcome(const core::Process& process, const core::ExitStatus& status) const {
    TrialOutcome result;
    result.elapsed_s = std::chrono::duration<double>(steady_clock::now() - began_).count();
    result.cpu_s = process.cpu_s();
    constexpr int kShellsWordForIt = 128 + SIGTERM;
    result.was_told_to_end = status.signal == SIGTERM || status.code == kShellsWordForIt;
    result.epochs = epochs_;
    result.reason = failure(status);
    if (result.reason.empty()) {
      result.end = TrialOutcome::End::finished;
      result.accuracy = result_->accuracy;
      result.loss = result_->loss;
      result.other = result_->other;
      result.model_file = found_model(job_, result_->model_file);
    } else if (cause_ == Cause::stopped) {
      result.end = TrialOutcome::End::stopped;
      result.reason = "it was stopped";
    } else if (cause_ == Cause::none && process.was_guard_killed()) {
      // Not the trial's fault: somebody killed one of our own processes.
      result.end = TrialOutcome::End::stopped;
      result.reason = "the process that watches over it was killed";
    }
    return result;
  }

  const TrialJob& job_;
  const TrialListener& listener_;
  const TrialProcessOptions& options_;
  TrialLog& log_;
  core::LineSplitter output_;
  bool saw_too_long_ = false;
  steady_clock::time_point began_ = steady_clock::now();
  std::optional<steady_clock::time_point> deadline_;
  bool ending_ = false;
  Cause cause_ = Cause::none;
  std::vector<EpochReport> epochs_;
  std::optional<ResultMessage> result_;
  std::string wrong_;
};

}  // namespace

Result<TrialOutcome> run_trial(const TrialJob& job, const TrialListener& listener,
                               const std::stop_token& stop, const TrialProcessOptions& options) {
  FLEETFIT_ASSIGN(auto document, trial_document(job));
  FLEETFIT_TRY(core::create_folder(job.checkpoint_folder));
  FLEETFIT_ASSIGN(auto log, TrialLog::open(job.log, options.max_log_bytes));
  FLEETFIT_ASSIGN(auto lock, CheckpointLock::take(job.checkpoint_folder,
                                                  {.attempt = job.attempt, .worker = job.worker},
                                                  options.grace + milliseconds(2000), stop));
  std::optional<measure::AppliedLimits> limits;
  RunningTrial trial(job, listener, options, log);
  bool is_prepared = false;
  const auto prepare = [&](int pid) -> Status {
    if (job.memory_bytes) limits = limit_memory(pid, *job.memory_bytes);
    // Without it a successor could not kill what this one leaves; it would wait for it to end.
    FLEETFIT_TRY(lock.record_group(pid));
    is_prepared = true;
    return {};
  };
  auto process = core::Process::start(
      job.command, {.environment = {{"FLEETFIT_TRIAL", document}},
                    .grace = options.grace,
                    .leftovers = core::Leftovers::all,
                    .cores = job.cores,
                    .keep_open = lock.descriptor().get(),
                    .prepare = prepare,
                    .on_output = [&](std::string_view bytes) { trial.take_output(bytes); },
                    .on_errors = [&](std::string_view bytes) { log.add(bytes); }});
  // What comes after the preparations is the program's own fault.
  if (!process && is_prepared)
    return TrialOutcome{.reason = core::one_line(process.error().message)};
  FLEETFIT_TRY(process);
  process->close_stdin();
  return trial.run(*process, stop);
}

}  // namespace fleetfit::tune
