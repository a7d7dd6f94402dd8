#include "fleetfit/core/process_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>

#include "fleetfit/core/process.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::core {
namespace {

using testing::HasSubstr;

TEST(ProcessInfo, ReadsWhatTheKernelWrites) {
  const TemporaryFolder proc;
  std::filesystem::create_directory(proc.path() / "7");
  proc.file("7/stat",
            "7 (a ) b) Z 1 7 7 0 -1 4194304 500 0 0 0 150 50 3 4 20 0 1 0 987654 6537216 170 x\n");
  const auto info = process_info(7, proc.path()).value();
  EXPECT_EQ(info.state, 'Z');
  EXPECT_EQ(info.start_ticks, 987654);
  EXPECT_DOUBLE_EQ(info.cpu_s, 200.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

TEST(ProcessInfo, RefusesWhatIsNoProcess) {
  const TemporaryFolder proc;
  EXPECT_EQ(process_info(7, proc.path()).error().code, ErrorCode::not_found);
  std::filesystem::create_directory(proc.path() / "7");
  proc.file("7/stat", "7 (a) S 1 7");
  const auto error = process_info(7, proc.path()).error();
  EXPECT_EQ(error.code, ErrorCode::invalid_input);
  EXPECT_THAT(error.message, HasSubstr("7/stat"));
}

TEST(ProcessInfo, KnowsThisProcess) {
  const auto before = process_info(::getpid()).value();
  while (process_info(::getpid()).value().cpu_s < before.cpu_s + 0.02) {
  }
  EXPECT_EQ(before.state, 'R');
  EXPECT_GT(before.start_ticks, 0);
  const auto child = Process::start({"sleep", "1000"}).value();
  EXPECT_GE(process_info(child.pid()).value().start_ticks, before.start_ticks);
}

}  // namespace
}  // namespace fleetfit::core
