#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "fleetfit/agent/agent.h"
#include "fleetfit/core/file.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// Jobs of a shell script; `$2` is the job's folder.
class JobProcessTest : public testing::Test {
 protected:
  std::unique_ptr<JobProcess> start(const std::string& script,
                                    const std::string& input = "the input") {
    const auto program = folder_.file("program", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    processes_ = make_job_processes(program);
    auto process = processes_->start(folder_.path(), input);
    EXPECT_TRUE(process) << process.error().message;
    return *std::move(process);
  }

  static ProcessEnd wait(JobProcess& process, std::vector<std::string>* lines = nullptr) {
    for (;;) {
      while (const auto line = process.read_line())
        if (lines != nullptr) lines->push_back(*line);
      if (const auto end = process.ended()) return *end;
      std::this_thread::sleep_for(1ms);
    }
  }

  int number_in(const char* file) const {
    for (;;) {
      int number = 0;
      if (std::ifstream(folder_.path() / file) >> number) return number;
      std::this_thread::sleep_for(1ms);
    }
  }

  core::TemporaryFolder folder_;
  std::unique_ptr<JobProcesses> processes_;
};

TEST_F(JobProcessTest, GivesItsLinesAndItsEnd) {
  std::vector<std::string> lines;
  const auto process = start("read line; echo \"$1 $line\"; echo two; echo why >&2; exit 3");
  const auto end = wait(*process, &lines);
  EXPECT_THAT(lines, ElementsAre("job the input", "two"));
  EXPECT_EQ(end.status.code, 3);
  EXPECT_EQ(end.last_words, "why");
}

TEST_F(JobProcessTest, TellsTheSignalOfACrash) {
  EXPECT_EQ(wait(*start("read line; kill -SEGV $$")).status.signal, SIGSEGV);
}

TEST_F(JobProcessTest, OneThatEndsBeforeItReadsItsOrderTellsItsEnd) {
  // More than a pipe holds: the rest cannot be written.
  const auto process = start("exec 0<&-; echo no >&2; exit 4", std::string(1 << 20, 'x'));
  const auto end = wait(*process);
  EXPECT_EQ(end.status.code, 4);
  EXPECT_EQ(end.last_words, "no");
}

TEST_F(JobProcessTest, WhatAJobLeavesRunningIsEndedWithIt) {
  const auto process = start(
      "setsid sh -c 'echo $$ > $0/pid; exec sleep 1000' $2 > /dev/null &\n"
      "while [ ! -s $2/pid ]; do :; done");
  const int orphan = number_in("pid");
  EXPECT_EQ(wait(*process).status.code, 0);
  EXPECT_NE(::kill(orphan, 0), 0);
}

TEST_F(JobProcessTest, AJobThatHangsIsKilledWithAllThatItStarted) {
  const auto process = start(
      "trap '' TERM\n"
      "setsid sh -c 'echo $$ > $0/pid; exec sleep 1000' $2 &\nsleep 1000");
  const int child = number_in("pid");
  process->kill();
  EXPECT_NE(wait(*process).status.signal, 0);
  EXPECT_NE(::kill(child, 0), 0);
}

TEST_F(JobProcessTest, CountsTheMemoryOfAllThatItStarted) {
  const auto process = start("sleep 1000 &\necho $! > $2/pid; wait");
  number_in("pid");
  EXPECT_GT(process->memory_bytes(), 0);
}

}  // namespace
}  // namespace fleetfit::agent
