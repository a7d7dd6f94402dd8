#include "fleetfit/core/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <thread>

#include "fleetfit/core/file.h"
#include "fleetfit/core/file_descriptor.h"
#include "tests/core/temporary_folder.h"
#include "tests/sanitized.h"

namespace fleetfit::core {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kLong = 60s;

std::vector<std::string> shell(std::string script) { return {"/bin/sh", "-c", std::move(script)}; }

std::string line_of(Process& process) { return process.read_line(kLong).value().value(); }

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

// A zombie that waits for somebody else to reap it is dead too.
bool is_alive(int pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/stat");
  return status && status->find(") Z") == std::string::npos;
}

bool dies(int pid) {
  for (int i = 0; i < 1000 && is_alive(pid); ++i) std::this_thread::sleep_for(10ms);
  return !is_alive(pid);
}

TEST(Run, GivesOutputErrorsAndExitStatus) {
  const auto result = run(shell("echo out; echo err >&2; exit 3")).value();
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.error_output, "err\n");
  EXPECT_EQ(result.status, (ExitStatus{.code = 3}));
  EXPECT_EQ(to_string(result.status), "exit status 3");
  EXPECT_FALSE(result.succeeded());
  EXPECT_TRUE(run({"true"}).value().succeeded());
}

TEST(Run, ReportsASignalAsAValue) {
  const auto result = run(shell("kill -9 $$")).value();
  EXPECT_EQ(result.status, (ExitStatus{.signal = 9}));
  EXPECT_EQ(to_string(result.status), "signal 9 (Killed)");
}

TEST(Run, AMissingProgramIsAnErrorAndNoExitStatus) {
  const auto error = run({"no-such-program-here"}).error();
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_EQ(error.message, "cannot start no-such-program-here: No such file or directory");
  EXPECT_EQ(run({"/bin"}).error().code, ErrorCode::io);
  EXPECT_EQ(run({}).error().code, ErrorCode::invalid_input);
}

TEST(Run, PassesArgumentsWithoutAShell) {
  EXPECT_EQ(run({"printf", "%s|", "a b", "$HOME", "", "*"}).value().output, "a b|$HOME||*|");
}

TEST(Run, SetsEnvironmentAndWorkingFolder) {
  const TemporaryFolder folder;
  const ProcessOptions process{.environment = {{"FLEETFIT_X", "1 2"}, {"HOME", "/nowhere"}},
                               .working_folder = folder.path()};
  const auto result =
      run(shell("echo \"$FLEETFIT_X $HOME\"; pwd -P"), {.process = process}).value();
  EXPECT_EQ(result.output,
            "1 2 /nowhere\n" + std::filesystem::canonical(folder.path()).string() + "\n");

  const auto error = run({"true"}, {.process = {.working_folder = folder.path() / "none"}}).error();
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_THAT(error.message, HasSubstr("working folder"));
}

TEST(Run, MovesLargeInputAndOutputAtOnce) {
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(run({"cat"}, {.input = large}).value().output, large);
}

TEST(Run, SurvivesAProgramThatDoesNotReadItsInput) {
  EXPECT_TRUE(run({"true"}, {.input = std::string(3'000'000, 'x')}).value().succeeded());
}

TEST(Run, BoundsWhatABabblingProgramSays) {
  const auto result = run(shell("head -c 5000000 /dev/zero; head -c 500000 /dev/zero >&2"),
                          {.process = {.max_error_bytes = 100}, .max_output_bytes = 1000})
                          .value();
  EXPECT_TRUE(result.succeeded());
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.output.size(), 1000u);
  EXPECT_EQ(result.error_output.size(), 100u);

  const auto endless = run({"yes"}, {.timeout = 200ms, .max_output_bytes = 10}).value();
  EXPECT_TRUE(endless.timed_out);
  EXPECT_EQ(endless.output, "y\ny\ny\ny\ny\n");
}

TEST(Run, ATimeoutKillsGrandchildrenToo) {
  const auto result = run(shell("sleep 1000 & echo $!; wait"), {.timeout = 500ms}).value();
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.succeeded());
  EXPECT_TRUE(dies(std::stoi(result.output)));
}

TEST(Run, KillsWhatIgnoresTheRequestToEnd) {
  const auto result = run(shell("trap '' TERM; sleep 1000 & echo $!; while :; do wait; done"),
                          {.process = {.grace = 100ms}, .timeout = 500ms})
                          .value();
  EXPECT_EQ(result.status.signal, SIGKILL);
  EXPECT_TRUE(dies(std::stoi(result.output)));
}

TEST(Run, DoesNotWaitForWhatTheProgramLeftBehind) {
  const auto result = run(shell("sleep 1000 & echo $!")).value();
  EXPECT_TRUE(result.succeeded());
  EXPECT_TRUE(dies(std::stoi(result.output)));
}

TEST(Run, CanBeCancelled) {
  std::stop_source source;
  std::jthread canceller([&] { source.request_stop(); });
  EXPECT_EQ(run({"sleep", "1000"}, {.stop = source.get_token()}).error().code,
            ErrorCode::cancelled);
}

TEST(Run, LeavesNoDescriptorAndNoZombie) {
  const auto before = open_files();
  for (int i = 0; i < 5; ++i) {
    (void)run(shell("echo x"));
    (void)run({"no-such-program-here"});
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Run, OtherProcessesPipesAreNotInherited) {
  const auto list_files = shell("cd /proc/self/fd && echo *");
  const auto alone = run(list_files).value().output;
  const auto other = Process::start({"cat"}).value();
  EXPECT_EQ(run(list_files).value().output, alone);
}

TEST(Process, TalksLineByLine) {
  auto process = Process::start({"cat"}).value();
  ASSERT_TRUE(process.write("one\ntwo\r\n", kLong));
  EXPECT_EQ(line_of(process), "one");
  EXPECT_EQ(line_of(process), "two");
  ASSERT_TRUE(process.write("\nlast", kLong));
  process.close_stdin();
  EXPECT_EQ(line_of(process), "");
  EXPECT_EQ(line_of(process), "last");
  EXPECT_EQ(process.read_line(kLong).value(), std::nullopt);
  EXPECT_EQ(process.wait(kLong), ExitStatus{});
}

TEST(Process, ReadingTimesOut) {
  auto process = Process::start({"sleep", "1000"}).value();
  const auto error = process.read_line(30ms).error();
  EXPECT_EQ(error.code, ErrorCode::device_failed);
  EXPECT_EQ(error.message, "sleep: no answer within 30 ms");
  EXPECT_EQ(process.wait(30ms), std::nullopt);
  EXPECT_EQ(process.stop(), (ExitStatus{.signal = SIGTERM}));
}

TEST(Process, WritingTimesOutIfNobodyReads) {
  auto process = Process::start({"sleep", "1000"}).value();
  EXPECT_THAT(process.write(std::string(1'000'000, 'x'), 50ms).error().message,
              HasSubstr("did not read its input within 50 ms"));
}

TEST(Process, NoticesADeadProcess) {
  auto process = Process::start(shell("echo last words; echo why >&2; exit 7")).value();
  EXPECT_EQ(line_of(process), "last words");
  EXPECT_EQ(process.read_line(kLong).value(), std::nullopt);
  EXPECT_EQ(process.wait(kLong), (ExitStatus{.code = 7}));
  EXPECT_EQ(process.error_output(), "why\n");
  EXPECT_EQ(process.write(std::string(1'000'000, 'x'), kLong).error().code,
            ErrorCode::device_failed);
  EXPECT_EQ(process.stop(), (ExitStatus{.code = 7}));
}

TEST(Process, NoticesADeadProcessWhoseOutputAnotherHoldsOpen) {
  auto process = Process::start(shell("sleep 1000 & echo $!")).value();
  const int grandchild = std::stoi(line_of(process));
  EXPECT_EQ(process.read_line(kLong).value(), std::nullopt);
  EXPECT_EQ(process.wait(kLong), ExitStatus{});
  EXPECT_TRUE(dies(grandchild));
}

TEST(Process, RefusesALineThatIsTooLong) {
  auto process = Process::start({"cat", "/dev/zero"}, {.max_line_bytes = 1000}).value();
  EXPECT_EQ(process.read_line(kLong).error().message,
            "cat: it wrote a line of more than 1000 bytes");
}

TEST(Process, DestroyingItEndsIt) {
  int pid = 0;
  {
    const auto process = Process::start({"sleep", "1000"}).value();
    pid = process.pid();
    EXPECT_TRUE(is_alive(pid));
  }
  EXPECT_FALSE(is_alive(pid));
}

TEST(Process, OutlivesTheThreadThatStartedIt) {
  std::optional<Process> process;
  std::jthread([&] { process = Process::start({"cat"}).value(); }).join();
  std::this_thread::sleep_for(20ms);
  ASSERT_TRUE(process->write("still here\n", kLong));
  EXPECT_EQ(line_of(*process), "still here");
}

TEST(Process, ReadingStopsWhenItIsAskedTo) {
  auto process = Process::start({"sleep", "1000"}).value();
  std::stop_source stop;
  const std::jthread user([&] { stop.request_stop(); });
  EXPECT_EQ(process.read_line(kLong, stop.get_token()).error().code, ErrorCode::cancelled);
}

TEST(Process, IsHeardPieceByPieceUntilItsEnd) {
  std::string output;
  std::string errors;
  auto process = Process::start(shell("echo one; echo two >&2; exit 5"),
                                {.on_output = [&](std::string_view bytes) { output += bytes; },
                                 .on_errors = [&](std::string_view bytes) { errors += bytes; }})
                     .value();
  std::optional<ExitStatus> end;
  while (!end) end = process.listen(kLong);
  EXPECT_EQ(*end, (ExitStatus{.code = 5}));
  EXPECT_EQ(output, "one\n");
  EXPECT_EQ(errors, "two\n");
}

TEST(Process, ListeningTimesOut) {
  auto process = Process::start({"sleep", "1000"}).value();
  EXPECT_EQ(process.listen(1ms), std::nullopt);
}

TEST(Process, IsAskedToEndAndMayFinish) {
  auto process =
      Process::start(shell("trap 'echo finished; exit 0' TERM; echo ready; while :; do :; done"))
          .value();
  EXPECT_EQ(line_of(process), "ready");
  process.ask_to_end();
  EXPECT_EQ(line_of(process), "finished");
  EXPECT_EQ(process.wait(kLong), ExitStatus{});
  process.ask_to_end();  // harmless
}

TEST(Process, IsPreparedBeforeItBegins) {
  int prepared = 0;
  auto process = Process::start(shell("ulimit -v; echo $$"), {.prepare = [&](int pid) -> Status {
                                  const rlimit limit{1 << 30, 1 << 30};
                                  ::prlimit(pid, RLIMIT_AS, &limit, nullptr);
                                  prepared = pid;
                                  return {};
                                }})
                     .value();
  EXPECT_EQ(line_of(process), "1048576");
  EXPECT_EQ(line_of(process), std::to_string(process.pid()));
  EXPECT_EQ(prepared, process.pid());
}

TEST(Process, RunsOnItsCores) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  const auto result =
      run({"grep", "Cpus_allowed_list", "/proc/self/status"}, {.process = {.cores = {first}}})
          .value();
  EXPECT_EQ(result.output, "Cpus_allowed_list:\t" + std::to_string(first) + "\n");
}

TEST(Process, DoesNotBeginIfItCannotBePrepared) {
  const TemporaryFolder folder;
  const auto witness = folder.path() / "witness";
  const auto refuse = [](int) -> Status { return fail(ErrorCode::unsupported, "no limits here"); };
  const auto error = Process::start({"touch", witness.string()}, {.prepare = refuse}).error();
  EXPECT_EQ(error.code, ErrorCode::unsupported);
  EXPECT_EQ(error.message, "no limits here");
  EXPECT_FALSE(std::filesystem::exists(witness));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Process, KeepsADescriptorOpenIfItIsToldTo) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor in(ends[0]);
  const FileDescriptor out(ends[1]);
  const auto script = "echo here >/proc/self/fd/" + std::to_string(out.get());
  ASSERT_TRUE(Process::start(shell(script), {.keep_open = out.get()}).value().wait(kLong));
  std::array<char, 5> text{};
  EXPECT_EQ(::read(in.get(), text.data(), text.size()), 5);
  EXPECT_FALSE(Process::start(shell(script + " 2>/dev/null")).value().wait(kLong)->succeeded());
}

TEST(Process, TellsTheMemoryAndTheCpuTimeOfAllThatItStarted) {
  auto process = Process::start(shell("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; "
                                      "echo done; sleep 1000' & wait"))
                     .value();
  EXPECT_EQ(line_of(process), "done");
  EXPECT_GT(process.memory_bytes(), 100'000);
  process.kill();
  EXPECT_TRUE(process.wait(kLong));
  EXPECT_EQ(process.memory_bytes(), 0);
  EXPECT_GT(process.cpu_s(), 0);
}

TEST(Process, DoesNotCountTheMemoryOfGuardsTwice) {
  const TemporaryFolder folder;
  auto process = Process::start(shell("cp $(command -v sleep) fleetfit-guard; echo copied; "
                                      "exec ./fleetfit-guard 1000"),
                                {.working_folder = folder.path()})
                     .value();
  EXPECT_EQ(line_of(process), "copied");
  for (int i = 0; i < 1000 && process.memory_bytes() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(process.memory_bytes(), 0);
  EXPECT_EQ(process.wait(0ms), std::nullopt);
}

TEST(Process, MayLeaveADaemonBehindOrNot) {
  const auto script = shell("setsid sleep 1000 >/dev/null 2>&1 & echo $!; sleep 0.1");
  auto lenient = Process::start(script).value();
  const int daemon = std::stoi(line_of(lenient));
  EXPECT_TRUE(lenient.wait(kLong));
  EXPECT_TRUE(is_alive(daemon));
  ::kill(daemon, SIGKILL);

  auto strict = Process::start(script, {.leftovers = Leftovers::all}).value();
  const int leftover = std::stoi(line_of(strict));
  EXPECT_TRUE(strict.wait(kLong));
  EXPECT_FALSE(is_alive(leftover));
}

TEST(Process, DiesWithItsGuard) {
  auto process = Process::start(shell("sleep 1000 & echo $!; echo $PPID; wait")).value();
  const int child = std::stoi(line_of(process));
  ::kill(std::stoi(line_of(process)), SIGKILL);
  EXPECT_EQ(process.wait(kLong), (ExitStatus{.signal = SIGKILL}));
  EXPECT_TRUE(process.was_guard_killed());
  EXPECT_TRUE(dies(process.pid()));
  EXPECT_TRUE(dies(child));
}

// A process of this program that starts a script, waits until it has written `file`, and is killed.
class Starter : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "forks a program with threads of the sanitizer";
  }

  std::vector<int> kill_the_starter_of(const std::string& script, const ProcessOptions& options) {
    const auto file = folder_.path() / "pids";
    const pid_t starter = ::fork();
    if (starter == 0) {
      auto process =
          Process::start(shell("cd " + folder_.path().string() + "; " + script), options);
      if (process) process->wait(kLong);
      ::_exit(0);
    }
    std::vector<int> pids;
    while (pids.size() < 2) {
      std::this_thread::sleep_for(5ms);
      pids.clear();
      std::ifstream in(file);
      for (int pid = 0; in >> pid;) pids.push_back(pid);
    }
    ::kill(starter, SIGKILL);
    ::waitpid(starter, nullptr, 0);
    return pids;
  }

  bool comes(const char* name) const {
    for (int i = 0; i < 1000 && !exists(folder_.path() / name); ++i)
      std::this_thread::sleep_for(10ms);
    return exists(folder_.path() / name);
  }

  TemporaryFolder folder_;
};

TEST_F(Starter, TakesTheProgramAndItsGroupWithIt) {
  const auto pids = kill_the_starter_of(
      "trap '' TERM HUP; sleep 1000 & echo $$ $! >pids; while :; do wait; done", {});
  for (const int pid : pids) EXPECT_TRUE(dies(pid)) << pid;
}

TEST_F(Starter, TakesWhatHasLeftTheGroupWithItIfThatIsWanted) {
  const auto pids = kill_the_starter_of("setsid sleep 1000 & echo $$ $! >pids; wait",
                                        {.leftovers = Leftovers::all});
  for (const int pid : pids) EXPECT_TRUE(dies(pid)) << pid;
}

TEST_F(Starter, MayLeaveTheProgramTimeToEndByItself) {
  const auto pids =
      kill_the_starter_of("echo $$ $$ >pids; read line; sleep 0.1; touch finished; sleep 1000",
                          {.orphan_grace = 2000ms});
  EXPECT_TRUE(comes("finished"));
  EXPECT_TRUE(dies(pids[0]));
}

}  // namespace
}  // namespace fleetfit::core
