#include "fleetfit/core/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <thread>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/sigpipe.h"

namespace fleetfit::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How late the end of a process may be noticed when its output does not tell.
constexpr milliseconds kSlice{20};

struct Pipe {
  FileDescriptor read;
  FileDescriptor write;
};

// Above the standard descriptors, which the child's are moved to one after the other.
FileDescriptor above_standard(int fd) {
  if (fd > 2) return FileDescriptor(fd);
  const FileDescriptor low(fd);
  return FileDescriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(ErrorCode::io, fmt::format("cannot create a pipe: {}", system_message(errno)));
  }
  return Pipe{above_standard(ends[0]), above_standard(ends[1])};
}

void make_nonblocking(const FileDescriptor& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

// What posix_spawn wants, freed at the end.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // A signal that we ignore or block would stay so in the child.
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  void use(const FileDescriptor& fd, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, fd.get(), as);
  }
  void discard(int fd) {
    ::posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_WRONLY, 0);
  }
  void enter(const std::filesystem::path& folder) {
    ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str());
  }

  // Gives an errno value.
  int spawn(std::vector<std::string>& argv, std::vector<std::string>& environment, pid_t& pid) {
    auto arguments = pointers_to(argv);
    auto variables = pointers_to(environment);
    return ::posix_spawnp(&pid, arguments[0], &actions_, &attributes_, arguments.data(),
                          variables.data());
  }

 private:
  static std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (auto& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> result;
  const auto is_replaced = [&](std::string_view variable) {
    return std::ranges::any_of(added, [&](const auto& pair) {
      return variable.size() > pair.first.size() && variable.starts_with(pair.first) &&
             variable[pair.first.size()] == '=';
    });
  };
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!is_replaced(*variable)) result.emplace_back(*variable);
  }
  for (const auto& [name, value] : added) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

Status check_request(const std::vector<std::string>& argv, const ProcessOptions& options) {
  if (argv.empty() || argv[0].empty()) {
    return fail(ErrorCode::invalid_input, "cannot start a program without a name");
  }
  std::error_code ignored;
  if (!options.working_folder.empty() &&
      !std::filesystem::is_directory(options.working_folder, ignored)) {
    return fail(ErrorCode::not_found, fmt::format("cannot start {}: there is no working folder {}",
                                                  argv[0], options.working_folder.string()));
  }
  return {};
}

tl::unexpected<Error> cannot_start(const std::string& program, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return fail(missing ? ErrorCode::not_found : ErrorCode::io,
              fmt::format("cannot start {}: {}", program, system_message(error)));
}

enum class ReadOutcome { some, none_now, ended };

ReadOutcome read_some(const FileDescriptor& fd, std::string& out) {
  std::array<char, 65'536> buffer;
  const auto got =
      retry_interrupted([&] { return ::read(fd.get(), buffer.data(), buffer.size()); });
  if (got > 0) {
    out.append(buffer.data(), static_cast<std::size_t>(got));
    return ReadOutcome::some;
  }
  return got < 0 && errno == EAGAIN ? ReadOutcome::none_now : ReadOutcome::ended;
}

milliseconds until(steady_clock::time_point deadline) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
}

// A deadline that does not overflow for the longest timeouts.
steady_clock::time_point after(milliseconds timeout) {
  return steady_clock::now() + std::min<milliseconds>(timeout, std::chrono::hours(24 * 365));
}

}  // namespace

std::string to_string(const ExitStatus& status) {
  if (status.signal == 0) return fmt::format("exit status {}", status.code);
  const char* meaning = ::sigdescr_np(status.signal);
  return fmt::format("signal {} ({})", status.signal, meaning != nullptr ? meaning : "unknown");
}

struct Process::State {
  std::string program;
  ProcessOptions options;
  pid_t pid = -1;
  FileDescriptor input;
  FileDescriptor output;
  FileDescriptor errors;
  std::string pending;       // of stdout, not yet given out
  std::size_t searched = 0;  // bytes of `pending` known to hold no line end
  std::string error_tail;
  std::optional<ExitStatus> status;

  tl::unexpected<Error> failed(std::string_view what) const {
    return fail(ErrorCode::device_failed, fmt::format("{}: {}", program, what));
  }

  // Leaves the process unreaped: its id must stay taken until its group has been killed.
  bool has_ended() const {
    if (status) return true;
    siginfo_t info{};
    const int got = retry_interrupted([&] {
      return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    });
    return got != 0 || info.si_pid == pid;
  }

  ExitStatus kill_group_and_reap() {
    if (status) return *status;
    ::kill(-pid, SIGKILL);
    int raw = 0;
    const auto reaped = retry_interrupted([&] { return ::waitpid(pid, &raw, 0); });
    status = ExitStatus{};
    if (reaped == pid && WIFEXITED(raw)) status->code = WEXITSTATUS(raw);
    if (reaped == pid && WIFSIGNALED(raw)) status->signal = WTERMSIG(raw);
    return *status;
  }

  bool wait_for_end(milliseconds timeout) {
    const auto deadline = after(timeout);
    for (milliseconds pause{1}; !has_ended(); pause = std::min(pause * 2, kSlice)) {
      const auto left = until(deadline);
      if (left.count() == 0) return false;
      // Sleeps on the pipes, so that a child that waits for them to be read can end.
      exchange({}, std::min(pause, left), Appetite::output_limited);
    }
    return true;
  }

  enum class Appetite { output_limited, output_unlimited };

  bool wants_output(Appetite appetite) const {
    return output.is_open() &&
           (appetite == Appetite::output_unlimited || pending.size() <= options.max_line_bytes);
  }

  // One round of waiting for the pipes: takes what the process says and gives it a part of `text`.
  // Returns how much it took.
  std::size_t exchange(std::string_view text, milliseconds timeout, Appetite appetite) {
    std::array<pollfd, 3> polled = {{{wants_output(appetite) ? output.get() : -1, POLLIN, 0},
                                     {errors.is_open() ? errors.get() : -1, POLLIN, 0},
                                     {text.empty() ? -1 : input.get(), POLLOUT, 0}}};
    if (::poll(polled.data(), polled.size(), static_cast<int>(timeout.count())) <= 0) return 0;
    if (polled[0].revents != 0 && read_some(output, pending) == ReadOutcome::ended) output.close();
    if (polled[1].revents != 0) take_errors();
    return polled[2].revents != 0 ? give(text) : 0;
  }

  ReadOutcome take_errors() {
    const auto outcome = read_some(errors, error_tail);
    if (outcome == ReadOutcome::ended) errors.close();
    if (error_tail.size() > options.max_error_bytes) {
      error_tail.erase(0, error_tail.size() - options.max_error_bytes);
    }
    return outcome;
  }

  std::size_t give(std::string_view text) {
    const SigpipeBlocked blocked;
    const auto written =
        retry_interrupted([&] { return ::write(input.get(), text.data(), text.size()); });
    if (written < 0 && errno != EAGAIN) input.close();
    return written < 0 ? 0 : static_cast<std::size_t>(written);
  }

  std::optional<std::string> take_line() {
    const auto end = pending.find('\n', searched);
    searched = pending.size();
    if (end == std::string::npos) return std::nullopt;
    std::string line = pending.substr(0, end);
    pending.erase(0, end + 1);
    searched = 0;
    if (line.ends_with('\r')) line.pop_back();
    return line;
  }

  std::optional<std::string> take_rest() {
    searched = 0;
    if (pending.empty()) return std::nullopt;
    return std::exchange(pending, {});
  }

  // What is in the pipes of a process that has ended; others may hold them open for ever.
  void drain(std::size_t max_bytes) {
    while (output.is_open() && pending.size() <= max_bytes &&
           read_some(output, pending) == ReadOutcome::some) {
    }
    for (int round = 0; round < 100 && errors.is_open(); ++round) {
      if (take_errors() != ReadOutcome::some) break;
    }
  }

  ExitStatus stop() {
    if (!status) ::kill(-pid, SIGTERM);
    wait_for_end(options.grace);
    return kill_group_and_reap();
  }
};

Result<Process> Process::start(std::vector<std::string> argv, const ProcessOptions& options) {
  FLEETFIT_TRY(check_request(argv, options));
  auto input = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  for (const auto* pipe : {&input, &output, &errors}) {
    FLEETFIT_TRY(*pipe);
  }

  SpawnPlan plan;
  plan.use(input->read, STDIN_FILENO);
  plan.use(output->write, STDOUT_FILENO);
  if (options.error_output == ErrorOutput::capture) plan.use(errors->write, STDERR_FILENO);
  if (options.error_output == ErrorOutput::discard) plan.discard(STDERR_FILENO);
  if (!options.working_folder.empty()) plan.enter(options.working_folder);

  auto state = std::make_unique<State>();
  auto environment = environment_with(options.environment);
  if (const int error = plan.spawn(argv, environment, state->pid))
    return cannot_start(argv[0], error);

  state->program = argv[0];
  state->options = options;
  state->input = std::move(input->write);
  state->output = std::move(output->read);
  if (options.error_output == ErrorOutput::capture) state->errors = std::move(errors->read);
  for (const auto* fd : {&state->input, &state->output, &state->errors}) {
    if (fd->is_open()) make_nonblocking(*fd);
  }
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

int Process::pid() const { return state_->pid; }

Status Process::write(std::string_view text, milliseconds timeout) {
  const auto deadline = after(timeout);
  while (!text.empty()) {
    if (!state_->input.is_open()) return state_->failed("it does not read its input any more");
    const auto left = until(deadline);
    text.remove_prefix(
        state_->exchange(text, std::min(left, kSlice), State::Appetite::output_limited));
    if (text.empty()) break;
    if (state_->has_ended()) return state_->failed("it ended before it had read its input");
    if (left.count() == 0) {
      return state_->failed(fmt::format("it did not read its input within {} ms", timeout.count()));
    }
  }
  return {};
}

void Process::close_stdin() { state_->input.close(); }

Result<std::optional<std::string>> Process::read_line(milliseconds timeout) {
  const auto deadline = after(timeout);
  for (;;) {
    if (auto line = state_->take_line()) return line;
    if (!state_->output.is_open()) return state_->take_rest();
    if (state_->pending.size() > state_->options.max_line_bytes) {
      return state_->failed(
          fmt::format("it wrote a line of more than {} bytes", state_->options.max_line_bytes));
    }
    const auto left = until(deadline);
    const bool ended = state_->has_ended();
    state_->exchange({}, ended ? milliseconds(0) : std::min(left, kSlice),
                     State::Appetite::output_limited);
    if (auto line = state_->take_line()) return line;
    if (ended && state_->output.is_open()) {
      state_->drain(state_->options.max_line_bytes);
      if (state_->pending.size() <= state_->options.max_line_bytes) state_->output.close();
      continue;
    }
    if (left.count() == 0)
      return state_->failed(fmt::format("no answer within {} ms", timeout.count()));
  }
}

const std::string& Process::error_output() const { return state_->error_tail; }

std::optional<ExitStatus> Process::wait(milliseconds timeout) {
  if (!state_->wait_for_end(timeout)) return std::nullopt;
  return state_->kill_group_and_reap();
}

ExitStatus Process::stop() { return state_->stop(); }

namespace {

// Moves `pending` to the output as far as it has room.
void keep_output(std::string& pending, std::size_t max_bytes, ProcessOutput& result) {
  const std::size_t room = max_bytes - result.output.size();
  result.truncated = result.truncated || pending.size() > room;
  result.output.append(pending, 0, room);
  pending.clear();
}

}  // namespace

Result<ProcessOutput> run(std::vector<std::string> argv, const RunOptions& options) {
  FLEETFIT_ASSIGN(auto process, Process::start(std::move(argv), options.process));
  auto& state = *process.state_;

  ProcessOutput result;
  std::string_view input = options.input;
  const auto deadline = after(options.timeout.value_or(milliseconds::max()));
  while (!state.has_ended() && !result.timed_out) {
    if (options.stop.stop_requested()) {
      state.stop();
      return fail(ErrorCode::cancelled, fmt::format("{}: it was cancelled", state.program));
    }
    if (input.empty()) state.input.close();
    const auto left = options.timeout ? until(deadline) : milliseconds::max();
    // Nothing but the end is to be expected after the output has been closed.
    const auto slice = state.output.is_open() ? kSlice : milliseconds(2);
    const auto appetite = Process::State::Appetite::output_unlimited;
    input.remove_prefix(
        state.exchange(state.input.is_open() ? input : "", std::min(slice, left), appetite));
    keep_output(state.pending, options.max_output_bytes, result);
    result.timed_out = left.count() == 0;
  }
  result.status = result.timed_out ? state.stop() : state.kill_group_and_reap();
  state.drain(options.max_output_bytes);
  keep_output(state.pending, options.max_output_bytes, result);
  result.error_output = std::move(state.error_tail);
  return result;
}

}  // namespace fleetfit::core
