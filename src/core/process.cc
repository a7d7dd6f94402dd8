#include "fleetfit/core/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "core/process_guard.h"
#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/line_splitter.h"
#include "fleetfit/core/process_info.h"
#include "fleetfit/core/sigpipe.h"

namespace fleetfit::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto name = text.substr(0, text.find('='));
    if (std::ranges::none_of(added, [&](const auto& pair) { return pair.first == name; }))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : added) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

Status check_request(const std::vector<std::string>& argv, const ProcessOptions& options) {
  if (argv.empty() || argv[0].empty())
    return fail(ErrorCode::invalid_input, "cannot start a program without a name");
  std::error_code ignored;
  if (!options.working_folder.empty() &&
      !std::filesystem::is_directory(options.working_folder, ignored)) {
    return fail(ErrorCode::not_found, fmt::format("cannot start {}: there is no working folder {}",
                                                  argv[0], options.working_folder.string()));
  }
  return {};
}

// What its stderr becomes, and where we read what it writes there.
Result<Ends> open_errors(ErrorOutput where) {
  if (where == ErrorOutput::capture) return make_pipe();
  Ends ends;
  if (where == ErrorOutput::inherit) ends.second = duplicate_above_standard(STDERR_FILENO);
  // Also if we have none ourselves.
  if (!ends.second.is_open()) {
    const FileDescriptor nothing(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ends.second = duplicate_above_standard(nothing.get());
  }
  return ends;
}

void make_nonblocking(const FileDescriptor& fd) {
  if (fd.is_open()) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

milliseconds until(steady_clock::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
}

// A deadline that does not overflow for the longest timeouts.
steady_clock::time_point after(milliseconds timeout) {
  return steady_clock::now() + std::min<milliseconds>(timeout, std::chrono::hours(24 * 365));
}

// A descriptor that becomes readable when a stop is asked for, so that nobody has to look again and
// again.
class StopSignal {
 public:
  explicit StopSignal(const std::stop_token& stop)
      : event_(stop.stop_possible() ? ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1),
        callback_(stop, Raise{event_.get()}) {}

  // -1 if nobody can ask for a stop.
  int descriptor() const { return event_.get(); }

 private:
  struct Raise {
    int event;
    void operator()() const {
      const std::uint64_t one = 1;
      static_cast<void>(!::write(event, &one, sizeof one));
    }
  };

  FileDescriptor event_;
  std::stop_callback<Raise> callback_;  // gone before the event is closed
};

}  // namespace

std::string to_string(const ExitStatus& status) {
  if (status.signal == 0) return fmt::format("exit status {}", status.code);
  const char* meaning = ::sigdescr_np(status.signal);
  return fmt::format("signal {} ({})", status.signal, meaning != nullptr ? meaning : "unknown");
}

struct Process::State {
  State(std::string name, const ProcessOptions& given, ProcessGuard started)
      : program(std::move(name)),
        options(given),
        guard(std::move(started)),
        lines(options.max_line_bytes) {
    options.prepare = {};  // what it borrows may be gone by now
  }

  std::string program;
  ProcessOptions options;
  ProcessGuard guard;
  FileDescriptor input;
  FileDescriptor output;
  FileDescriptor errors;
  LineSplitter lines;  // of stdout, not yet given out
  std::string error_tail;

  tl::unexpected<Error> failed(std::string_view what) const {
    return fail(ErrorCode::device_failed, fmt::format("{}: {}", program, what));
  }

  tl::unexpected<Error> cancelled() const {
    return fail(ErrorCode::cancelled, fmt::format("{}: it was cancelled", program));
  }

  tl::unexpected<Error> line_too_long() const {
    return failed(fmt::format("it wrote a line of more than {} bytes", options.max_line_bytes));
  }

  bool has_ended() { return guard.look().has_value(); }

  // One that writes faster than its lines are taken has to wait.
  bool wants_output() const {
    return options.on_output || lines.held_bytes() <= options.max_line_bytes;
  }

  // One round of waiting: takes in what the process writes and gives it a part of `text`. Returns
  // how much it took.
  std::size_t exchange(std::string_view text, milliseconds timeout, int stop_signal = -1) {
    const bool ended = has_ended();
    std::array<pollfd, 5> polled = {{{wants_output() ? output.get() : -1, POLLIN, 0},
                                     {errors.get(), POLLIN, 0},
                                     {text.empty() ? -1 : input.get(), POLLOUT, 0},
                                     {ended ? -1 : guard.end_signal(), POLLIN, 0},
                                     {stop_signal, POLLIN, 0}}};
    const auto patience = ended ? milliseconds(0) : std::min(timeout, milliseconds(60'000));
    if (::poll(polled.data(), polled.size(), static_cast<int>(patience.count())) <= 0) return 0;
    if (polled[0].revents != 0) take_output();
    if (polled[1].revents != 0) take_errors();
    return polled[2].revents != 0 ? give(text) : 0;
  }

  // These two say whether there was something.
  bool take_output() {
    return take(output, [this](std::string_view bytes) {
      if (options.on_output) return options.on_output(bytes);
      lines.add(bytes);
    });
  }

  bool take_errors() {
    return take(errors, [this](std::string_view bytes) {
      if (options.on_errors) return options.on_errors(bytes);
      error_tail += bytes;
      if (error_tail.size() > options.max_error_bytes)
        error_tail.erase(0, error_tail.size() - options.max_error_bytes);
    });
  }

  template <class Use>
  bool take(FileDescriptor& from, const Use& use) {
    if (!from.is_open()) return false;
    std::array<char, 65'536> buffer;
    const auto got =
        retry_interrupted([&] { return ::read(from.get(), buffer.data(), buffer.size()); });
    if (got > 0) use(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    if (got == 0 || (got < 0 && errno != EAGAIN)) from.close();
    return got > 0;
  }

  std::size_t give(std::string_view text) {
    const SigpipeBlocked blocked;
    const auto written =
        retry_interrupted([&] { return ::write(input.get(), text.data(), text.size()); });
    if (written < 0 && errno != EAGAIN) input.close();
    return written < 0 ? 0 : static_cast<std::size_t>(written);
  }

  // What is in the pipes of a process that has ended. What others write that hold them open is not
  // waited for, and no more is taken than the largest pipe holds.
  void take_in_last_words() {
    constexpr int kMostRounds = 100;
    for (int round = 0; round < kMostRounds && take_errors(); ++round) {
    }
    for (int round = 0; round < kMostRounds && wants_output() && take_output(); ++round) {
    }
    if (wants_output()) output.close();
    errors.close();
  }

  // Meanwhile takes in what it writes, so that a process that waits for that can end.
  bool wait_for_end(milliseconds timeout, const std::stop_token& stop = {}) {
    const StopSignal stop_signal(stop);
    const auto deadline = after(timeout);
    while (!has_ended()) {
      const auto left = until(deadline);
      if (left.count() == 0 || stop.stop_requested()) return false;
      exchange({}, left, stop_signal.descriptor());
    }
    return true;
  }

  std::optional<ExitStatus> status() {
    const auto& end = guard.look();
    return end ? std::optional(end->status) : std::nullopt;
  }

  ExitStatus stop() {
    if (!has_ended()) guard.ask_to_end();
    if (!wait_for_end(options.grace)) guard.kill();
    return guard.collect().status;
  }

  // A whole line; at the end also one that is not.
  Result<std::optional<std::string>> take_line() {
    auto line = lines.next();
    if (!line && !output.is_open()) line = lines.rest();
    if (lines.runs_over() || (line && line->too_long)) return line_too_long();
    if (!line) return std::nullopt;
    if (line->text.ends_with('\r')) line->text.pop_back();
    return std::move(line->text);
  }
};

Result<Process> Process::start(std::vector<std::string> argv, const ProcessOptions& options) {
  FLEETFIT_TRY(check_request(argv, options));
  FLEETFIT_ASSIGN(auto input, make_pipe());
  FLEETFIT_ASSIGN(auto output, make_pipe());
  FLEETFIT_ASSIGN(auto errors, open_errors(options.error_output));
  auto name = argv[0];
  FLEETFIT_ASSIGN(auto guard,
                  ProcessGuard::start({.argv = std::move(argv),
                                       .environment = environment_with(options.environment),
                                       .input = std::move(input.first),
                                       .output = std::move(output.second),
                                       .errors = std::move(errors.second)},
                                      options));
  auto state = std::make_unique<State>(std::move(name), options, std::move(guard));
  state->input = std::move(input.second);
  state->output = std::move(output.first);
  state->errors = std::move(errors.first);
  for (const auto* fd : {&state->input, &state->output, &state->errors}) make_nonblocking(*fd);
  return Process(std::move(state));
}

Process::Process(std::unique_ptr<State> state) : state_(std::move(state)) {}
Process::Process(Process&&) noexcept = default;

Process& Process::operator=(Process&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Process::~Process() {
  if (state_) state_->stop();
}

int Process::pid() const { return state_->guard.program(); }

Status Process::write(std::string_view text, milliseconds timeout, const std::stop_token& stop) {
  const StopSignal stop_signal(stop);
  const auto deadline = after(timeout);
  while (!text.empty()) {
    if (!state_->input.is_open()) return state_->failed("it does not read its input any more");
    if (stop.stop_requested()) return state_->cancelled();
    const auto left = until(deadline);
    text.remove_prefix(state_->exchange(text, left, stop_signal.descriptor()));
    if (text.empty()) break;
    if (state_->has_ended()) return state_->failed("it ended before it had read its input");
    if (left.count() == 0)
      return state_->failed(fmt::format("it did not read its input within {} ms", timeout.count()));
  }
  return {};
}

void Process::close_stdin() { state_->input.close(); }

Result<std::optional<std::string>> Process::read_line(milliseconds timeout,
                                                      const std::stop_token& stop) {
  const StopSignal stop_signal(stop);
  const auto deadline = after(timeout);
  for (;;) {
    const auto left = until(deadline);
    FLEETFIT_ASSIGN(auto line, state_->take_line());
    if (line || !state_->output.is_open()) return line;
    if (stop.stop_requested()) return state_->cancelled();
    if (state_->has_ended()) {
      state_->take_in_last_words();
      continue;
    }
    state_->exchange({}, left, stop_signal.descriptor());
    if (left.count() > 0) continue;
    FLEETFIT_ASSIGN(line, state_->take_line());
    if (line || !state_->output.is_open()) return line;
    return state_->failed(fmt::format("no answer within {} ms", timeout.count()));
  }
}

std::optional<ExitStatus> Process::listen(milliseconds timeout, const std::stop_token& stop) {
  if (!state_->has_ended()) state_->exchange({}, timeout, StopSignal(stop).descriptor());
  if (state_->has_ended()) state_->take_in_last_words();
  return state_->status();
}

const std::string& Process::error_output() const { return state_->error_tail; }

std::int64_t Process::memory_bytes() const {
  if (state_->has_ended()) return 0;
  return memory_bytes_of_children(state_->guard.guard());
}

std::optional<ExitStatus> Process::wait(milliseconds timeout, const std::stop_token& stop) {
  if (!state_->wait_for_end(timeout, stop)) return std::nullopt;
  return state_->status();
}

void Process::ask_to_end() { state_->guard.ask_to_end(); }
void Process::kill() { state_->guard.kill(); }
ExitStatus Process::stop() { return state_->stop(); }

double Process::cpu_s() const {
  const auto& end = state_->guard.end();
  return end ? end->cpu_s : 0;
}

bool Process::was_guard_killed() const {
  const auto& end = state_->guard.end();
  return end && !end->is_known;
}

Result<ProcessOutput> run(std::vector<std::string> argv, const RunOptions& options) {
  ProcessOutput result;
  auto process_options = options.process;
  process_options.on_output = [&](std::string_view bytes) {
    const auto room = options.max_output_bytes - result.output.size();
    result.truncated = result.truncated || bytes.size() > room;
    result.output.append(bytes.substr(0, room));
  };
  FLEETFIT_ASSIGN(auto process, Process::start(std::move(argv), process_options));
  auto& state = *process.state_;

  const StopSignal stop_signal(options.stop);
  std::string_view input = options.input;
  const auto deadline = after(options.timeout.value_or(milliseconds::max()));
  while (!state.has_ended() && !result.timed_out) {
    if (options.stop.stop_requested()) {
      state.stop();
      return state.cancelled();
    }
    if (input.empty()) state.input.close();
    const auto left = until(deadline);
    input.remove_prefix(
        state.exchange(state.input.is_open() ? input : "", left, stop_signal.descriptor()));
    result.timed_out = left.count() == 0;
  }
  result.status = state.stop();
  state.take_in_last_words();
  result.error_output = std::move(state.error_tail);
  return result;
}

}  // namespace fleetfit::core
