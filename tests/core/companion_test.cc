#include "fleetfit/core/companion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "fleetfit/core/file.h"
#include "fleetfit/core/interrupt.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/program.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::core {
namespace {

using namespace std::chrono_literals;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// The test program is its own companion: it starts itself with one of the tests below that are
// switched off.
std::vector<std::string> only(const std::string& test) {
  return {"--gtest_also_run_disabled_tests", "--gtest_filter=CompanionItself.DISABLED_" + test};
}

// Written by the companion when it may be stopped, where a variable of its environment says.
constexpr const char* kReadyFile = "FLEETFIT_TEST_READY_FILE";

TEST(CompanionItself, DISABLED_SaysSomethingAndFails) {
  std::puts("said something");
  std::fflush(stdout);
  std::_Exit(7);
}

TEST(CompanionItself, DISABLED_WaitsUntilItIsStopped) {
  const Interrupt interrupt;
  std::puts("waits");
  std::fflush(stdout);
  ASSERT_TRUE(write_file(std::getenv(kReadyFile), ""));
  while (!interrupt.token().stop_requested()) std::this_thread::sleep_for(5ms);
  std::puts("was stopped");
  std::fflush(stdout);
  std::_Exit(0);
}

TEST(CompanionItself, DISABLED_BecomesAnother) {
  std::fputs("before, ", stdout);
  const Interrupt interrupt;  // holds signals back, which the other must not
  std::_Exit(report(become_companion("core_test", only("WaitsUntilItIsStopped"))));
}

TEST(Companion, IsFoundBesideTheRunningProgram) {
  EXPECT_THAT(find_companion("core_test").value().string(), EndsWith("/core_test"));
}

TEST(Companion, ThatIsNotInstalledIsNamed) {
  const auto error = find_companion("fleetfit-nothing").error();
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_THAT(error.message, StartsWith("fleetfit-nothing is not installed beside core_test"));
  EXPECT_EQ(become_companion("fleetfit-nothing", {}), error);
  EXPECT_EQ(run_companion("fleetfit-nothing", {}).error(), error);
}

TEST(Companion, GivesOutputAndStatusOfAStep) {
  const auto done = run_companion("core_test", only("SaysSomethingAndFails")).value();
  EXPECT_EQ(done.status, (ExitStatus{.code = 7}));
  EXPECT_THAT(done.output, HasSubstr("said something\n"));
}

TEST(Companion, MayFinishItsWorkWhenItIsAskedToStop) {
  std::stop_source stop;
  const TemporaryFolder folder;
  const auto ready = folder.path() / "ready";
  const std::jthread user([&] {
    while (!std::filesystem::exists(ready)) std::this_thread::sleep_for(5ms);
    stop.request_stop();
  });
  const auto done =
      run_companion("core_test", only("WaitsUntilItIsStopped"),
                    {.stop = stop.get_token(), .environment = {{kReadyFile, ready.string()}}})
          .value();
  EXPECT_EQ(done.status, ExitStatus{});
  EXPECT_THAT(done.output, HasSubstr("was stopped\n"));
}

TEST(Companion, TakesThePlaceOfTheProgramAndItsSignals) {
  std::vector<std::string> command{find_companion("core_test").value().string()};
  for (const auto& word : only("BecomesAnother")) command.push_back(word);
  const TemporaryFolder folder;
  const ProcessOptions options{.environment = {{kReadyFile, (folder.path() / "ready").string()}}};
  auto process = Process::start(command, options).value();
  std::string said;
  while (!said.ends_with("waits")) said = process.read_line(60s).value().value();
  ::kill(process.pid(), SIGINT);
  EXPECT_EQ(process.read_line(60s).value().value(), "was stopped");
  EXPECT_EQ(process.wait(60s), ExitStatus{});
}

}  // namespace
}  // namespace fleetfit::core
