#include "tune/executors/supervised_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/limits.h"

namespace fleetfit::tune {
namespace {

constexpr char kGo = 'g';
constexpr char kGoLimited = 'l';  // the program limits its own memory
constexpr char kTerminate = 't';
constexpr char kKill = 'k';

// What the supervisor tells us: pieces that a pipe takes whole.
struct Report {
  enum class Kind : std::int32_t { started, not_started, ended };
  Kind kind = Kind::started;
  std::int32_t value = 0;  // process group; errno; status as of waitpid
};

struct Pipe {
  core::FileDescriptor read;
  core::FileDescriptor write;
};

// Above the standard descriptors, which the program's are moved to.
core::FileDescriptor above_standard(int fd) {
  if (fd > 2) return core::FileDescriptor(fd);
  const core::FileDescriptor low(fd);
  return core::FileDescriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::io,
                fmt::format("cannot create a pipe: {}", core::system_message(errno)));
  return Pipe{above_standard(ends[0]), above_standard(ends[1])};
}

// Everything that the forked processes need, made before: after the fork of a process with several
// threads nothing may be allocated.
struct Plan {
  std::vector<char*> argv;
  std::vector<char*> environment;
  cpu_set_t cores{};
  bool pinned = false;
  rlim_t memory = RLIM_INFINITY;
  int control = -1;
  int report = -1;
  int output = -1;
  int errors = -1;
  int lock = -1;
};

void send(int fd, Report::Kind kind, int value) {
  const Report report{kind, value};
  static_cast<void>(!::write(fd, &report, sizeof report));
}

void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become_program(const Plan& plan, pid_t supervisor, bool limit_memory) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(127);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.errors, STDERR_FILENO);
  if (plan.lock >= 0) ::fcntl(plan.lock, F_SETFD, 0);
  if (plan.pinned) ::sched_setaffinity(0, sizeof plan.cores, &plan.cores);
  if (limit_memory) {
    const rlimit limit{plan.memory, plan.memory};
    ::setrlimit(RLIMIT_DATA, &limit);
  }
  reset_signals();
  ::execvpe(plan.argv[0], plan.argv.data(), plan.environment.data());
  send(plan.report, Report::Kind::not_started, errno);
  ::_exit(127);
}

// Leaves only what the supervisor needs: it must not hold open what others wait for to be closed.
void close_others(const Plan& plan) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  std::array<int, 5> kept = {plan.control, plan.report, plan.output, plan.errors, plan.lock};
  std::ranges::sort(kept);
  unsigned next = 3;
  for (const int fd : kept) {
    if (fd < 3) continue;
    const auto kept_fd = static_cast<unsigned>(fd);
    if (kept_fd > next) ::close_range(next, kept_fd - 1, 0);
    next = kept_fd + 1;
  }
  ::close_range(next, ~0U, 0);
}

// What left the program's group and was adopted.
void kill_children() {
  const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (list < 0) return;
  std::array<char, 4096> text{};
  const auto size = ::read(list, text.data(), text.size());
  ::close(list);
  pid_t pid = 0;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const char c = text[static_cast<std::size_t>(i)];
    if (c >= '0' && c <= '9') {
      pid = pid * 10 + (c - '0');
    } else {
      if (pid > 1) ::kill(pid, SIGKILL);
      pid = 0;
    }
  }
}

void clear_away() {
  constexpr int kRounds = 2000;  // 10 s; only what the kernel itself holds lasts longer
  for (int round = 0; round < kRounds; ++round) {
    kill_children();
    pid_t gone = 0;
    while ((gone = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (gone < 0 && errno == ECHILD) return;
    ::poll(nullptr, 0, 5);
  }
}

// Reaps what was adopted; says whether the program itself has ended, which stays unreaped, so that
// its group's id stays taken.
bool program_ended(pid_t program) {
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
    if (info.si_pid == program) return true;
    ::waitpid(info.si_pid, nullptr, 0);
  }
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == program;
}

// Does what it is told, and kills the program when nobody is there any more to tell it anything.
void obey(int& control, pid_t program) {
  char word = 0;
  const auto got = ::read(control, &word, 1);
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) {
    control = -1;
    ::kill(-program, SIGKILL);
    return;
  }
  ::kill(-program, word == kTerminate ? SIGTERM : SIGKILL);
}

[[noreturn]] void supervise(const Plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "fleetfit-trial");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  close_others(plan);
  char word = 0;
  if (::read(plan.control, &word, 1) != 1 || (word != kGo && word != kGoLimited)) ::_exit(1);

  const pid_t self = ::getpid();
  const pid_t program = ::fork();
  if (program == 0) become_program(plan, self, word == kGoLimited);
  if (program < 0) {
    send(plan.report, Report::Kind::not_started, errno);
    ::_exit(1);
  }
  ::setpgid(program, program);
  send(plan.report, Report::Kind::started, program);
  ::close(plan.output);
  ::close(plan.errors);

  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  const int signals = ::signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
  int control = plan.control;
  while (!program_ended(program)) {
    std::array<pollfd, 2> polled = {{{control, POLLIN, 0}, {signals, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), 1000);
    signalfd_siginfo ignored{};
    while (::read(signals, &ignored, sizeof ignored) > 0) {
    }
    if (polled[0].revents != 0) obey(control, program);
  }
  ::kill(-program, SIGKILL);
  int status = 0;
  ::waitpid(program, &status, 0);
  clear_away();
  send(plan.report, Report::Kind::ended, status);
  ::_exit(0);
}

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

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// No signal may reach the forked process before it holds them all back.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

core::ExitStatus exit_status_of(int raw) {
  if (WIFSIGNALED(raw)) return {.signal = WTERMSIG(raw)};
  return {.code = WEXITSTATUS(raw)};
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// A control group counts the memory of all processes together; where there is none, each gets a
// limit of its own.
std::optional<measure::AppliedLimits> limit_memory(pid_t pid, std::optional<std::int64_t> bytes) {
  if (!bytes) return std::nullopt;
  measure::Device device{.name = "trial"};
  device.limits.memory_bytes = bytes;
  auto applied = measure::apply_limits(pid, device);
  if (!applied) return std::nullopt;
  return *std::move(applied);
}

}  // namespace

struct SupervisedProcess::State {
  pid_t supervisor = -1;
  pid_t group = 0;
  core::FileDescriptor control;
  core::FileDescriptor reports;
  core::FileDescriptor output;
  core::FileDescriptor errors;
  std::optional<measure::AppliedLimits> limits;
  std::string start_error;
  std::optional<SupervisedEnd> end;

  void take_first_report() {
    Report first;
    if (::read(reports.get(), &first, sizeof first) != sizeof first) return;
    if (first.kind == Report::Kind::started) group = first.value;
    if (first.kind == Report::Kind::not_started) start_error = core::system_message(first.value);
  }

  void tell(char word) const {
    // A supervisor that has ended reads nothing: the signal for that must not end us.
    sigset_t pipe;
    sigset_t before;
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, &before);
    if (::write(control.get(), &word, 1) < 0) {
      const timespec at_once{};
      ::sigtimedwait(&pipe, nullptr, &at_once);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  SupervisedEnd wait_for_end() {
    SupervisedEnd result{.status = {.signal = SIGKILL}, .start_error = start_error};
    Report report;
    ::fcntl(reports.get(), F_SETFL, 0);
    for (;;) {
      const auto got = ::read(reports.get(), &report, sizeof report);
      if (got < 0 && errno == EINTR) continue;
      if (got != sizeof report) break;
      if (report.kind == Report::Kind::not_started)
        result.start_error = core::system_message(report.value);
      if (report.kind != Report::Kind::ended) continue;
      result.status = exit_status_of(report.value);
      result.is_known = true;
    }
    rusage usage{};
    int ignored = 0;
    while (::wait4(supervisor, &ignored, 0, &usage) < 0 && errno == EINTR) {
    }
    result.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    limits.reset();
    return result;
  }
};

Result<SupervisedProcess> SupervisedProcess::start(const SupervisedCommand& command) {
  if (command.argv.empty() || command.argv[0].empty())
    return fail(ErrorCode::invalid_input, "cannot start a program without a name");
  auto control = make_pipe();
  auto reports = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  for (const auto* pipe : {&control, &reports, &output, &errors}) FLEETFIT_TRY(*pipe);

  auto arguments = command.argv;
  auto environment = environment_with(command.environment);
  Plan plan{.argv = pointers_to(arguments), .environment = pointers_to(environment)};
  plan.pinned = !command.cores.empty();
  CPU_ZERO(&plan.cores);
  for (const int core : command.cores) CPU_SET(static_cast<std::size_t>(core), &plan.cores);
  if (command.memory_bytes) plan.memory = static_cast<rlim_t>(*command.memory_bytes);
  plan.control = control->read.get();
  plan.report = reports->write.get();
  plan.output = output->write.get();
  plan.errors = errors->write.get();
  plan.lock = command.lock;

  auto state = std::make_unique<State>();
  {
    const SignalsBlocked blocked;
    state->supervisor = ::fork();
    if (state->supervisor == 0) supervise(plan);
  }
  if (state->supervisor < 0)
    return fail(ErrorCode::io,
                fmt::format("cannot start a process: {}", core::system_message(errno)));
  state->control = std::move(control->write);
  state->reports = std::move(reports->read);
  state->output = std::move(output->read);
  state->errors = std::move(errors->read);
  for (const int fd : {state->output.get(), state->errors.get()})
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  reports->write.close();
  state->limits = limit_memory(state->supervisor, command.memory_bytes);
  state->tell(command.memory_bytes && !state->limits ? kGoLimited : kGo);
  state->take_first_report();
  return SupervisedProcess(std::move(state));
}

SupervisedProcess::SupervisedProcess(std::unique_ptr<State> state) : state_(std::move(state)) {}
SupervisedProcess::SupervisedProcess(SupervisedProcess&&) noexcept = default;

SupervisedProcess::~SupervisedProcess() {
  if (!state_ || state_->end) return;
  kill();
  state_->end = state_->wait_for_end();
}

int SupervisedProcess::output() const { return state_->output.get(); }
int SupervisedProcess::errors() const { return state_->errors.get(); }
int SupervisedProcess::end_signal() const { return state_->reports.get(); }
int SupervisedProcess::group() const { return state_->group; }

void SupervisedProcess::ask_to_end() { state_->tell(kTerminate); }
void SupervisedProcess::kill() { state_->tell(kKill); }

SupervisedEnd SupervisedProcess::collect() {
  if (!state_->end) state_->end = state_->wait_for_end();
  return *state_->end;
}

}  // namespace fleetfit::tune
