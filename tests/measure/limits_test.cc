#include "fleetfit/measure/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "fleetfit/core/process.h"
#include "tests/measure/kernel_tree.h"

namespace fleetfit::measure {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kPid = 4242;

// Puts a tree of files in the kernel's format where the limits look. The kernel fills a new group's
// folder with files, and removes them with it.
class LimitsTest : public testing::Test {
 protected:
  LimitsTest() {
    system.cgroup = tree.root() / "cgroup";
    system.cpu = tree.root() / "cpu";
    system.proc = tree.root() / "proc";
    system.state = tree.root() / "run";
    system.make_group = [this](const fs::path& group) -> Status {
      if (!fs::create_directory(group)) return fail(ErrorCode::io, "exists: " + group.string());
      for (const auto& file : group_files) put(group / file, "");
      return {};
    };
    system.remove_group = [this](const fs::path& group) -> Status {
      removed.push_back(group);
      fs::remove_all(group);
      return {};
    };
    put_process(kPid, "77");
    put_process(::getpid(), "55");
  }

  void put(const fs::path& file, std::string_view value) const {
    tree.put(file.lexically_relative(tree.root()), value);
  }
  std::string get(const fs::path& file) const {
    return tree.get(file.lexically_relative(tree.root()));
  }

  void put_process(int pid, const std::string& start) const {
    put(system.proc / std::to_string(pid) / "stat",
        std::to_string(pid) + " (a b) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 " + start + " 0 0");
  }

  void put_v1() {
    for (const auto* file : {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cgroup.procs"}) {
      put(system.cgroup / "cpu,cpuacct" / file, "");
    }
    put(system.cgroup / "memory/memory.limit_in_bytes", "9223372036854771712");
    put(system.cgroup / "memory/cgroup.procs", "");
    put(system.cgroup / "memory/user/cgroup.procs", "");
    put(system.proc / std::to_string(kPid) / "cgroup",
        "4:memory:/user\n1:cpu,cpuacct:/elsewhere\n0::/");
    group_files = {"cpu.cfs_quota_us", "cpu.cfs_period_us", "cgroup.procs", "memory.limit_in_bytes",
                   "memory.memsw.limit_in_bytes"};
  }

  void put_v2(std::string_view controllers) {
    put(system.cgroup / "cgroup.controllers", controllers);
    put(system.cgroup / "cgroup.subtree_control", "memory");
    put(system.cgroup / "cgroup.procs", "");
    put(system.cgroup / "system.slice/cgroup.subtree_control", "cpu memory");
    put(system.cgroup / "system.slice/cgroup.procs", "");
    put(system.cgroup / "system.slice/a.service/cgroup.procs", "4242");
    put(system.proc / std::to_string(kPid) / "cgroup", "0::/system.slice/a.service");
    group_files = {"cpu.max", "memory.max", "memory.swap.max", "cgroup.procs"};
  }

  void put_frequency(int core) const {
    const auto folder = system.cpu / ("cpu" + std::to_string(core)) / "cpufreq";
    put(folder / "cpuinfo_min_freq", "600000");
    put(folder / "cpuinfo_max_freq", "1500000");
    put(folder / "scaling_max_freq", "1400000");
  }

  std::string group_name() const {
    return "fleetfit-" + std::to_string(::getpid()) + "-55-" + std::to_string(kPid);
  }

  Result<AppliedLimits> apply(const Limits& limits) {
    return apply_limits(kPid, {.name = "weak", .limits = limits}, system);
  }

  KernelTree tree;
  LimitSystem system;
  std::vector<std::string> group_files;
  std::vector<fs::path> removed;
};

TEST_F(LimitsTest, SetsQuotaAndMemoryInVersion1) {
  put_v1();
  auto limits = apply({.cpu_quota_percent = 25, .memory_bytes = 64 << 20});
  ASSERT_TRUE(limits) << limits.error().message;
  // The path that the process names for cpu does not exist here, as in a container.
  const auto cpu = system.cgroup / "cpu,cpuacct" / group_name();
  const auto memory = system.cgroup / "memory/user" / group_name();
  EXPECT_EQ(get(cpu / "cpu.cfs_period_us"), "100000");
  EXPECT_EQ(get(cpu / "cpu.cfs_quota_us"), "25000");
  EXPECT_EQ(get(cpu / "cgroup.procs"), "4242");
  EXPECT_EQ(get(memory / "memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(get(memory / "memory.memsw.limit_in_bytes"), "67108864");
  EXPECT_EQ(get(memory / "cgroup.procs"), "4242");
  EXPECT_TRUE(limits->release());
  EXPECT_THAT(removed, testing::UnorderedElementsAre(cpu, memory));
  // Back to where it was.
  EXPECT_EQ(get(system.cgroup / "memory/user/cgroup.procs"), "4242");
}

TEST_F(LimitsTest, SetsBothInOneGroupOfVersion2) {
  put_v2("cpuset cpu io memory pids");
  {
    const auto limits = apply({.cpu_quota_percent = 150, .memory_bytes = 64 << 20});
    ASSERT_TRUE(limits) << limits.error().message;
    // Beside the service's own group, whose processes forbid groups below it.
    const auto group = system.cgroup / "system.slice" / group_name();
    EXPECT_EQ(get(group / "cpu.max"), "150000 100000");
    EXPECT_EQ(get(group / "memory.max"), "67108864");
    EXPECT_EQ(get(group / "memory.swap.max"), "0");
    EXPECT_EQ(get(group / "cgroup.procs"), "4242");
  }
  EXPECT_EQ(removed.size(), 1u);
  EXPECT_EQ(get(system.cgroup / "system.slice/a.service/cgroup.procs"), "4242");
}

TEST_F(LimitsTest, EnablesTheControllerInVersion2) {
  put_v2("cpu memory");
  put(system.proc / std::to_string(kPid) / "cgroup", "0::/");
  const auto limits = apply({.cpu_quota_percent = 50});
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(get(system.cgroup / "cgroup.subtree_control"), "+cpu");
  EXPECT_EQ(get(system.cgroup / group_name() / "cpu.max"), "50000 100000");
}

TEST_F(LimitsTest, NamesTheControllerThatIsMissing) {
  put_v2("hugetlb");
  fs::rename(system.cgroup, tree.root() / "v2");
  fs::create_directories(system.cgroup);
  fs::rename(tree.root() / "v2", system.cgroup / "unified");
  const auto limits = apply({.cpu_quota_percent = 50});
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, ErrorCode::unsupported);
  EXPECT_THAT(limits.error().message, HasSubstr("this machine's cgroup v2 has no cpu controller"));
}

TEST_F(LimitsTest, SaysThatThereAreNoControlGroups) {
  const auto limits = apply({.memory_bytes = 64 << 20});
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, ErrorCode::unsupported);
  EXPECT_THAT(limits.error().message, HasSubstr("no control groups for memory"));
}

TEST_F(LimitsTest, LeavesNothingBehindIfTheKernelRefuses) {
  put_v1();
  group_files = {"cpu.cfs_period_us", "cgroup.procs"};
  const auto limits = apply({.cpu_quota_percent = 25});
  ASSERT_FALSE(limits);
  EXPECT_THAT(limits.error().message, HasSubstr("cpu.cfs_quota_us"));
  EXPECT_EQ(removed.size(), 1u);
}

TEST_F(LimitsTest, TellsHowOftenTheProcessWasThrottled) {
  put_v1();
  const auto limits = apply({.cpu_quota_percent = 25});
  put(system.cgroup / "cpu,cpuacct" / group_name() / "cpu.stat",
      "nr_periods 20\nnr_throttled 17\nthrottled_time 1234");
  EXPECT_EQ(limits->throttled_periods().value(), 17);
}

TEST_F(LimitsTest, LowersTheClockFrequencyAndRestoresIt) {
  put(system.cpu / "online", "0-1");
  put_frequency(0);
  put_frequency(1);
  const auto core0 = system.cpu / "cpu0/cpufreq/scaling_max_freq";
  {
    const auto limits = apply({.frequency_khz = 800'000});
    ASSERT_TRUE(limits) << limits.error().message;
    EXPECT_EQ(get(core0), "800000");
    EXPECT_EQ(get(system.cpu / "cpu1/cpufreq/scaling_max_freq"), "800000");
  }
  EXPECT_EQ(get(core0), "1400000");
  EXPECT_TRUE(fs::is_empty(system.state));
}

TEST_F(LimitsTest, RefusesAFrequencyThatTheCoreDoesNotHave) {
  put(system.cpu / "online", "0");
  put_frequency(0);
  EXPECT_EQ(apply({.frequency_khz = 100}).error().message,
            "core 0 runs at 600000 to 1500000 kHz, not at 100");
}

TEST_F(LimitsTest, SaysThatTheFrequencyCannotBeSet) {
  put(system.cpu / "online", "0");
  const auto limits = apply({.frequency_khz = 800'000});
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error().code, ErrorCode::unsupported);
  EXPECT_THAT(limits.error().message, HasSubstr("cpuinfo_min_freq"));
}

TEST_F(LimitsTest, SweepsWhatDeadProgramsLeft) {
  put_v1();
  put_frequency(0);
  const auto cpu = system.cgroup / "cpu,cpuacct";
  put(cpu / "fleetfit-999-11-1000/cgroup.procs", "");
  // The same number again, but another process: the first one is dead.
  put_process(888, "22");
  put(cpu / "fleetfit-888-21-1000/cgroup.procs", "");
  put(cpu / "fleetfit-888-22-1000/cgroup.procs", "");
  put(cpu / "somebody-999-11-1/cgroup.procs", "");
  put(cpu / "fleetfit-x/cgroup.procs", "");
  const auto frequency = system.cpu / "cpu0/cpufreq/scaling_max_freq";
  put(system.state / "frequency-999-11", "1500000 " + frequency.string());
  EXPECT_EQ(sweep_stale_limits(system), 3);
  EXPECT_THAT(removed, testing::UnorderedElementsAre(cpu / "fleetfit-999-11-1000",
                                                     cpu / "fleetfit-888-21-1000"));
  EXPECT_EQ(get(frequency), "1500000");
  EXPECT_FALSE(fs::exists(system.state / "frequency-999-11"));
}

TEST_F(LimitsTest, NamesAProcessThatDoesNotExist) {
  put_v1();
  const auto limits =
      apply_limits(31, {.name = "weak", .limits = {.cpu_quota_percent = 5}}, system);
  ASSERT_FALSE(limits);
  EXPECT_EQ(limits.error(), (Error{ErrorCode::not_found, "there is no process 31"}));
}

// From here on with this machine's own kernel.

TEST(LimitsOfThisMachine, BindAProcessToOneCore) {
  const auto process = core::Process::start({"sleep", "60"});
  ASSERT_TRUE(process);
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(process->pid(), sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  const auto limits = apply_limits(process->pid(), {.name = "one", .cores = {core}});
  ASSERT_TRUE(limits) << limits.error().message;
  cpu_set_t after;
  ASSERT_EQ(::sched_getaffinity(process->pid(), sizeof after, &after), 0);
  EXPECT_EQ(CPU_COUNT(&after), 1);
  EXPECT_TRUE(CPU_ISSET(core, &after));
}

TEST(LimitsOfThisMachine, ThrottleABusyProcess) {
  auto process = core::Process::start({"sh", "-c", "while :; do :; done"});
  ASSERT_TRUE(process);
  auto limits =
      apply_limits(process->pid(), {.name = "quarter", .limits = {.cpu_quota_percent = 25}});
  if (!limits) GTEST_SKIP() << "no quota here: " << limits.error().message;
  // A busy process is throttled in nearly every period of 100 ms; wait for three, as long as it
  // takes.
  std::int64_t throttled = 0;
  for (int i = 0; i < 600 && throttled < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    throttled = limits->throttled_periods().value();
  }
  EXPECT_GE(throttled, 3);
  process->stop();
  const auto released = limits->release();
  EXPECT_TRUE(released) << released.error().message;
}

TEST(LimitsOfThisMachine, EndAProcessThatTakesTooMuchMemory) {
  // Waits for a line, then asks for 256 MB.
  auto process = core::Process::start(
      {"sh", "-c", "read go; exec dd if=/dev/zero of=/dev/null bs=256M count=1"});
  ASSERT_TRUE(process);
  auto limits =
      apply_limits(process->pid(), {.name = "small", .limits = {.memory_bytes = 32 << 20}});
  if (!limits) GTEST_SKIP() << "no memory limit here: " << limits.error().message;
  ASSERT_TRUE(process->write("go\n", std::chrono::seconds(10)));
  const auto status = process->wait(std::chrono::seconds(60));
  ASSERT_TRUE(status);
  EXPECT_FALSE(status->succeeded()) << core::to_string(*status);
  const auto released = limits->release();
  EXPECT_TRUE(released) << released.error().message;
}

}  // namespace
}  // namespace fleetfit::measure
