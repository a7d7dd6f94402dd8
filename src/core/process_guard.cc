#include "core/process_guard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace fleetfit::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What we say to the guard; the end of our line says that we are gone.
constexpr char kTerminate = 't';
constexpr char kKill = 'k';

// What the guard says to us.
struct Report {
  enum class Kind : std::int32_t { started, not_started, ended };
  Kind kind = Kind::started;
  std::int32_t value = 0;  // the program's id; errno; status as of waitpid
};

// Everything that the forked processes need, made before: after the fork of a process with several
// threads nothing may be allocated.
struct Plan {
  std::vector<char*> argv;
  std::vector<char*> environment;
  const char* folder = nullptr;
  int line = -1;
  int starter = -1;  // a word on it lets the program begin; an errno comes back, or its end
  int input = -1;
  int output = -1;
  int errors = -1;
  int keep_open = -1;
  bool adopts = false;
  milliseconds orphan_grace{0};
};

// --- the program ---------------------------------------------------------------------------------

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

[[noreturn]] void become_program(const Plan& plan, pid_t guard) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != guard) ::_exit(127);
  char word = 0;
  if (::read(plan.starter, &word, 1) != 1) ::_exit(127);
  ::dup2(plan.input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.errors, STDERR_FILENO);
  if (plan.keep_open >= 0) ::fcntl(plan.keep_open, F_SETFD, 0);
  reset_signals();
  if (plan.folder == nullptr || ::chdir(plan.folder) == 0)
    ::execvpe(plan.argv[0], plan.argv.data(), plan.environment.data());
  const int error = errno;
  ::send(plan.starter, &error, sizeof error, MSG_NOSIGNAL);
  ::_exit(127);
}

// --- the guard -----------------------------------------------------------------------------------

void send_report(int line, Report::Kind kind, int value) {
  const Report report{kind, value};
  ::send(line, &report, sizeof report, MSG_NOSIGNAL);
}

void close_from_to(unsigned first, unsigned last) {
  if (first > last || ::close_range(first, last, 0) == 0) return;
  // A kernel before 5.9.
  const auto most = static_cast<unsigned>(std::max(::sysconf(_SC_OPEN_MAX), 1024L));
  for (unsigned fd = first; fd <= std::min(last, most); ++fd) ::close(static_cast<int>(fd));
}

// Leaves only what the guard needs: it must not hold open what others wait for to be closed.
void close_others(const Plan& plan) {
  const int nothing = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  std::array<int, 6> kept = {plan.line,   plan.starter, plan.input,
                             plan.output, plan.errors,  plan.keep_open};
  std::ranges::sort(kept);
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd <= STDERR_FILENO) continue;
    const auto kept_fd = static_cast<unsigned>(fd);
    close_from_to(next, kept_fd - 1);
    next = kept_fd + 1;
  }
  close_from_to(next, ~0U);
}

// What left the program's group and was adopted.
void kill_children() {
  const FileDescriptor list(::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC));
  if (!list.is_open()) return;
  std::array<char, 4096> text{};
  const auto size = ::read(list.get(), text.data(), text.size());
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

// Stands by the program until it has ended: does what we ask for, and kills the program when we are
// gone.
void watch(const Plan& plan, pid_t program) {
  constexpr milliseconds kLookAround{1000};
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  const int signals = ::signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
  int line = plan.line;
  std::optional<steady_clock::time_point> end;
  while (!program_ended(program)) {
    auto pause = kLookAround;
    if (end) {
      const auto left = std::chrono::ceil<milliseconds>(*end - steady_clock::now());
      if (left.count() <= 0) ::kill(-program, SIGKILL);
      if (left.count() > 0) pause = std::min(pause, left);
    }
    std::array<pollfd, 2> polled = {{{line, POLLIN, 0}, {signals, POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), static_cast<int>(pause.count()));
    signalfd_siginfo ignored{};
    while (::read(signals, &ignored, sizeof ignored) > 0) {
    }
    if (polled[0].revents == 0) continue;
    char word = 0;
    if (::recv(line, &word, 1, 0) == 1) {
      ::kill(-program, word == kTerminate ? SIGTERM : SIGKILL);
    } else {
      line = -1;
      end = steady_clock::now() + plan.orphan_grace;
    }
  }
}

[[noreturn]] void stand_guard(const Plan& plan) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, kGuardName);
  if (plan.adopts) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  close_others(plan);
  static_cast<void>(std::signal(SIGCHLD, SIG_DFL));  // ignored, it would hide how children end
  const pid_t self = ::getpid();
  const pid_t program = ::fork();
  if (program == 0) become_program(plan, self);
  if (program < 0) {
    send_report(plan.line, Report::Kind::not_started, errno);
    ::_exit(1);
  }
  ::setpgid(program, program);
  send_report(plan.line, Report::Kind::started, program);
  for (const int fd : {plan.starter, plan.input, plan.output, plan.errors}) ::close(fd);

  watch(plan, program);
  ::kill(-program, SIGKILL);
  int status = 0;
  ::waitpid(program, &status, 0);
  if (plan.adopts) clear_away();
  send_report(plan.line, Report::Kind::ended, status);
  ::_exit(0);
}

// --- we ------------------------------------------------------------------------------------------

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

pid_t fork_guard(const Plan& plan) {
  const SignalsBlocked blocked;
  const pid_t guard = ::fork();
  if (guard == 0) stand_guard(plan);
  return guard;
}

FileDescriptor above_standard(int fd) {
  if (fd > STDERR_FILENO) return FileDescriptor(fd);
  const FileDescriptor low(fd);
  return duplicate_above_standard(fd);
}

// Keeps messages apart and says when the other side is gone.
Result<Ends> make_socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(ErrorCode::io,
                fmt::format("cannot create a pair of sockets: {}", system_message(errno)));
  return Ends{above_standard(ends[0]), above_standard(ends[1])};
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

template <class Message>
bool receive(const FileDescriptor& from, Message& message, int flags = 0) {
  return retry_interrupted([&] { return ::recv(from.get(), &message, sizeof message, flags); }) ==
         sizeof message;
}

ExitStatus exit_status_of(int raw) {
  if (WIFSIGNALED(raw)) return {.signal = WTERMSIG(raw)};
  return {.code = WEXITSTATUS(raw)};
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Of the guard, which has waited for all others.
double collect_cpu_s(pid_t guard) {
  rusage usage{};
  int ignored = 0;
  retry_interrupted([&] { return ::wait4(guard, &ignored, 0, &usage); });
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Where the machine does not allow it, the program runs anywhere.
void pin(pid_t pid, const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &set);
  static_cast<void>(::sched_setaffinity(pid, sizeof set, &set));
}

tl::unexpected<Error> cannot_start(const std::string& program, int error) {
  const bool missing = error == ENOENT || error == ENOTDIR;
  return fail(missing ? ErrorCode::not_found : ErrorCode::io,
              fmt::format("cannot start {}: {}", program, system_message(error)));
}

}  // namespace

FileDescriptor duplicate_above_standard(int fd) {
  return FileDescriptor(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

Result<Ends> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::io, fmt::format("cannot create a pipe: {}", system_message(errno)));
  return Ends{above_standard(ends[0]), above_standard(ends[1])};
}

Result<ProcessGuard> ProcessGuard::start(GuardedProgram program, const ProcessOptions& options) {
  FLEETFIT_ASSIGN(auto line, make_socket_pair());
  FLEETFIT_ASSIGN(auto starter, make_socket_pair());
  const Plan plan{
      .argv = pointers_to(program.argv),
      .environment = pointers_to(program.environment),
      .folder = options.working_folder.empty() ? nullptr : options.working_folder.c_str(),
      .line = line.second.get(),
      .starter = starter.second.get(),
      .input = program.input.get(),
      .output = program.output.get(),
      .errors = program.errors.get(),
      .keep_open = options.keep_open,
      .adopts = options.leftovers == Leftovers::all,
      .orphan_grace = options.orphan_grace};
  const pid_t guard = fork_guard(plan);
  if (guard < 0) return cannot_start(program.argv[0], errno);
  line.second.close();
  starter.second.close();
  ProcessGuard result(guard, std::move(line.first));
  FLEETFIT_TRY(result.begin(starter.first, program.argv[0], options));
  return result;
}

Status ProcessGuard::begin(const FileDescriptor& starter, const std::string& name,
                           const ProcessOptions& options) {
  Report report{.kind = Report::Kind::not_started, .value = ECHILD};
  receive(line_, report);
  if (report.kind != Report::Kind::started) return cannot_start(name, report.value);
  program_ = report.value;
  if (!options.cores.empty()) pin(program_, options.cores);
  if (options.prepare) FLEETFIT_TRY(options.prepare(program_));
  const char go = 'g';
  ::send(starter.get(), &go, 1, MSG_NOSIGNAL);
  int error = 0;
  if (receive(starter, error)) return cannot_start(name, error);
  return {};
}

ProcessGuard::~ProcessGuard() {
  if (!line_.is_open()) return;
  kill();
  collect();
}

void ProcessGuard::ask_to_end() const { ::send(line_.get(), &kTerminate, 1, MSG_NOSIGNAL); }
void ProcessGuard::kill() const { ::send(line_.get(), &kKill, 1, MSG_NOSIGNAL); }

// Nothing but the end is reported after the start, or the guard is gone without a word.
void ProcessGuard::take_report(int flags) {
  if (end_) return;
  Report report{.kind = Report::Kind::not_started};
  const auto got =
      retry_interrupted([&] { return ::recv(line_.get(), &report, sizeof report, flags); });
  if (got < 0 && errno == EAGAIN) return;
  end_.emplace();
  if (got == sizeof report && report.kind == Report::Kind::ended) {
    end_->status = exit_status_of(report.value);
    end_->is_known = true;
  } else if (program_ > 0) {
    ::kill(-program_, SIGKILL);  // what it started; the kernel kills the program alone
  }
  end_->cpu_s = collect_cpu_s(guard_);
}

const std::optional<ProcessGuard::End>& ProcessGuard::look() {
  take_report(MSG_DONTWAIT);
  return end_;
}

const ProcessGuard::End& ProcessGuard::collect() {
  take_report(0);
  return *end_;
}

}  // namespace fleetfit::core
