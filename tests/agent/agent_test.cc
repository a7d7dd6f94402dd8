#include "fleetfit/agent/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/agent/fake_fleet.h"
#include "tests/core/fake_clock.h"
#include "tests/core/temporary_folder.h"

namespace fleetfit::agent {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

json probe_job(int id, int attempt = 1) {
  return {{"id", id},        {"attempt", attempt},
          {"kind", "probe"}, {"request", json::object()},
          {"lease_s", 60},   {"limits", {{"seconds", 20}, {"memory_bytes", 1000}}}};
}

const std::string kDone =
    R"({"line":"outcome","finished":true,"reason":"","result":{"answer":42}})";

class AgentTest : public testing::Test {
 protected:
  /// As if the program were started; what was in memory before is gone.
  void start() {
    agent_.reset();
    auto agent = open_agent({.registration = {.name = "pi4", .version = "1"},
                             .jobs = {.state = folder_.path() / "state"},
                             .connection = R"({"token":"s3cret"})"},
                            server_, processes_, clock_,
                            [this](std::string_view line) { log_ += std::string(line) + "\n"; });
    ASSERT_TRUE(agent) << agent.error().message;
    agent_ = *std::move(agent);
  }

  void run_for(std::chrono::nanoseconds time) {
    const auto end = clock_.now() + time;
    while (clock_.now() < end) {
      agent_->step();
      clock_.advance(100ms);
    }
  }

  void begin_job(int id = 1) {
    server_.waiting.push_back(probe_job(id));
    start();
    run_for(1s);
    ASSERT_EQ(processes_.folders.size(), 1u);
  }

  json only_result() {
    EXPECT_EQ(server_.results.size(), 1u);
    return server_.results.empty() ? json() : server_.results.front();
  }

  core::TemporaryFolder folder_;
  core::FakeClock clock_;
  FakeServer server_;
  FakeProcesses processes_;
  std::string log_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentTest, RegistersThenLivesByHeartbeats) {
  start();
  run_for(25s);
  EXPECT_EQ(server_.registrations, 1);
  EXPECT_EQ(server_.heartbeats.size(), 3u);  // at 0, 10 and 20 s
  EXPECT_TRUE(server_.heartbeats.front()["running"].empty());
}

TEST_F(AgentTest, DoesAJobAndSendsItsResult) {
  begin_job(7);
  EXPECT_EQ(processes_.inputs.front(), R"({"token":"s3cret"})");
  EXPECT_TRUE(std::filesystem::exists(processes_.folders.front() / "job.json"));
  EXPECT_EQ(server_.heartbeats.back()["running"], (json::array({{{"id", 7}, {"attempt", 1}}})));
  processes_.job.lines = {R"({"line":"started"})", kDone};
  processes_.job.end = ProcessEnd{};
  run_for(1s);
  const auto result = only_result();
  EXPECT_EQ(result["job"], 7);
  EXPECT_EQ(result["state"], "finished");
  EXPECT_EQ(result["result"]["answer"], 42);
  EXPECT_FALSE(std::filesystem::exists(processes_.folders.front()));
}

TEST_F(AgentTest, TakesTheNextJobAfterOne) {
  begin_job(1);
  server_.waiting.push_back(probe_job(2));
  processes_.job.lines = {kDone};
  processes_.job.end = ProcessEnd{};
  run_for(1s);
  EXPECT_EQ(processes_.folders.size(), 2u);
  EXPECT_EQ(server_.heartbeats.back()["running"][0]["id"], 2);
}

TEST_F(AgentTest, ACrashIsAFailedJobWithTheSignal) {
  begin_job();
  processes_.job.end = ProcessEnd{.status = {.signal = 11}, .last_words = "it was at layer 3"};
  run_for(1s);
  EXPECT_EQ(only_result()["state"], "failed");
  EXPECT_EQ(only_result()["reason"],
            "the job was killed by signal 11 (SIGSEGV): it was at layer 3");
}

TEST_F(AgentTest, AnExitWithoutAResultIsAFailedJob) {
  begin_job();
  processes_.job.end = ProcessEnd{.status = {.code = 3}};
  run_for(1s);
  EXPECT_EQ(only_result()["reason"], "the job ended with exit status 3");
}

TEST_F(AgentTest, AJobThatHangsIsEndedWhenItsTimeIsOver) {
  begin_job();
  processes_.job.lines = {R"({"line":"started"})"};
  run_for(19s);
  EXPECT_FALSE(processes_.job.killed);
  run_for(3s);
  EXPECT_TRUE(processes_.job.killed);
  EXPECT_EQ(only_result()["reason"], "the job took longer than 20 s and was ended");
}

TEST_F(AgentTest, WhatAJobSaysWhenItIsEndedIsNoResult) {
  begin_job();
  processes_.job.lines = {R"({"line":"started"})"};
  processes_.job.last_line = kDone;
  run_for(22s);
  EXPECT_EQ(only_result()["state"], "failed");
  EXPECT_THAT(only_result()["reason"].get<std::string>(), HasSubstr("longer than 20 s"));
}

TEST_F(AgentTest, TheTimeOfAJobBeginsWhenItsFilesAreThere) {
  begin_job();
  run_for(60s);
  EXPECT_FALSE(processes_.job.killed);
}

TEST_F(AgentTest, AJobThatEatsMemoryIsEnded) {
  begin_job();
  processes_.job.memory_bytes = 1001;
  run_for(1s);
  EXPECT_TRUE(processes_.job.killed);
  EXPECT_THAT(only_result()["reason"].get<std::string>(), HasSubstr("1001 bytes of memory"));
}

TEST_F(AgentTest, AProcessThatCannotBeStartedIsAFailedJob) {
  processes_.can_start = false;
  server_.waiting.push_back(probe_job(1));
  start();
  run_for(1s);
  EXPECT_EQ(only_result()["reason"], "there is no memory");
}

TEST_F(AgentTest, CancelledJobsAreEnded) {
  begin_job(5);
  server_.cancel = {4, 5};
  run_for(11s);
  EXPECT_TRUE(processes_.job.killed);
  EXPECT_EQ(only_result()["reason"], "the job was cancelled");
}

TEST_F(AgentTest, WorksOnWhileTheServerIsAwayAndSendsEverythingWhenItIsBack) {
  begin_job();
  server_.failure = fleet::CallError{.message = "no route"};
  for (int i = 0; i < 3; ++i)
    processes_.job.lines.push_back(R"({"line":"event","kind":"switch","body":{"to":"s1"}})");
  processes_.job.lines.push_back(kDone);
  processes_.job.end = ProcessEnd{};
  server_.calls = 0;
  run_for(600s);
  EXPECT_TRUE(server_.results.empty());
  // A second, two, four … up to a minute, up to half of it off.
  EXPECT_GE(server_.calls, 12);
  EXPECT_LE(server_.calls, 30);
  server_.failure.reset();
  run_for(61s);
  EXPECT_EQ(only_result()["state"], "finished");
  EXPECT_EQ(server_.events.size(), 3u);
  EXPECT_EQ(server_.events.begin()->second["kind"], "switch");
  EXPECT_EQ(server_.events.begin()->second["job"], 1);
  EXPECT_EQ(server_.results_received, 1);
}

TEST_F(AgentTest, WaitsAsLongAsTheServerSays) {
  server_.failure = fleet::CallError{.status = 429, .message = "busy", .retry_after_s = 40};
  start();
  run_for(39s);
  EXPECT_EQ(server_.calls, 1);
  run_for(3s);
  EXPECT_EQ(server_.calls, 2);
}

TEST_F(AgentTest, AResultWhoseReplyWasLostIsSentAgain) {
  begin_job();
  server_.lost_replies = {"/agent/results"};
  processes_.job.lines = {kDone};
  processes_.job.end = ProcessEnd{};
  run_for(10s);
  EXPECT_EQ(server_.results_received, 2);
  EXPECT_EQ(only_result()["state"], "finished");
}

TEST_F(AgentTest, AResultOutlivesTheAgent) {
  begin_job();
  server_.failure = fleet::CallError{.status = 503, .message = "closed"};
  processes_.job.lines = {kDone, R"({"line":"event","kind":"log","body":{"message":"m"}})"};
  processes_.job.end = ProcessEnd{};
  run_for(1s);
  start();
  server_.failure.reset();
  run_for(2s);
  EXPECT_EQ(only_result()["result"]["answer"], 42);
  EXPECT_EQ(server_.events.size(), 1u);
}

TEST_F(AgentTest, AfterARestartItRunsNothingThatItRanBefore) {
  begin_job();
  const auto job_folder = processes_.folders.front();
  server_.heartbeats.clear();
  start();
  run_for(1s);
  EXPECT_FALSE(std::filesystem::exists(job_folder));
  EXPECT_TRUE(server_.results.empty());
  EXPECT_TRUE(server_.heartbeats.back()["running"].empty());
}

TEST_F(AgentTest, NumbersOfEventsNeverComeAgain) {
  begin_job();
  const auto event = R"({"line":"event","kind":"log","body":{"message":"m"}})";
  processes_.job.lines = {event, event};
  run_for(2s);
  EXPECT_EQ(server_.events.size(), 2u);
  const auto last = server_.events.rbegin()->first;
  server_.waiting.push_back(probe_job(1, 2));
  start();
  run_for(1s);
  processes_.job.lines = {event};
  run_for(2s);
  EXPECT_EQ(server_.events.size(), 3u);
  EXPECT_GT(server_.events.rbegin()->first, last);
}

TEST_F(AgentTest, NumbersGoOnWhereTheServerIsWhenTheFolderWasLost) {
  server_.last_sequence = 5'000'000'000'000;
  begin_job();
  processes_.job.lines = {R"({"line":"event","kind":"log","body":{"message":"m"}})"};
  run_for(2s);
  ASSERT_EQ(server_.events.size(), 1u);
  EXPECT_GT(server_.events.begin()->first, 5'000'000'000'000);
}

TEST_F(AgentTest, ARefusedResultDoesNotKeepOthersBack) {
  begin_job(1);
  server_.refuse = [](std::string_view path, const json& body) {
    return path == "/agent/results" && body.dump().find("42") != std::string::npos;
  };
  processes_.job.lines = {kDone};
  processes_.job.end = ProcessEnd{};
  run_for(2s);
  EXPECT_EQ(only_result()["state"], "failed");
  EXPECT_EQ(only_result()["reason"], "the server refused the result: it is nonsense");
}

TEST_F(AgentTest, AJobOfAKindThatItDoesNotKnowHasFailed) {
  auto job = probe_job(9);
  job["kind"] = "paint";
  server_.waiting.push_back(job);
  start();
  run_for(1s);
  EXPECT_EQ(only_result()["job"], 9);
  EXPECT_THAT(only_result()["reason"].get<std::string>(), HasSubstr("there is no job \"paint\""));
}

TEST_F(AgentTest, ARevokedTokenIsTriedAgainRarely) {
  start();
  run_for(1s);
  server_.failure = fleet::CallError{.status = 401, .message = "the token was revoked"};
  server_.calls = 0;
  run_for(600s);
  EXPECT_LE(server_.calls, 11);
  EXPECT_THAT(log_, HasSubstr("the token was revoked"));
  server_.failure.reset();
  run_for(70s);
  EXPECT_EQ(server_.registrations, 2);
}

TEST_F(AgentTest, WhatIsServedGoesWithHeartbeats) {
  const std::string hash(64, 'c');
  auto job = probe_job(3);
  job["kind"] = "run";
  job["request"] = {{"bundle", hash}, {"budget_ms", 5}, {"data", "d"}};
  server_.waiting.push_back(job);
  start();
  processes_.next.lines = {
      R"({"line":"event","kind":"latency","body":{"latency_ms":4.5,"subnet":"o"}})"};
  run_for(11s);
  const auto& serving = server_.heartbeats.back()["serving"];
  EXPECT_EQ(serving["latency_ms"], 4.5);
  EXPECT_EQ(serving["bundle"], hash);
}

TEST_F(AgentTest, NonsenseFromAJobIsLoggedAndNothingElse) {
  begin_job();
  processes_.job.lines = {"hello", R"({"line":"event"})", R"({"line":7})", kDone};
  processes_.job.end = ProcessEnd{};
  run_for(1s);
  EXPECT_EQ(only_result()["state"], "finished");
  EXPECT_THAT(log_, HasSubstr("kind"));
}

TEST_F(AgentTest, TheLogHasNoToken) {
  begin_job();
  server_.failure = fleet::CallError{.message = "no route"};
  run_for(20s);
  EXPECT_THAT(log_, Not(HasSubstr("s3cret")));
  EXPECT_THAT(log_, HasSubstr("no route"));
}

TEST_F(AgentTest, TwoAgentsDoNotShareAFolder) {
  start();
  const auto second = open_agent({.jobs = {.state = folder_.path() / "state"}}, server_, processes_,
                                 clock_, [](std::string_view) {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another agent"));
}

}  // namespace
}  // namespace fleetfit::agent
