#include "fleetfit/core/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"

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

}  // namespace
}  // namespace fleetfit::core
