#include "fleetfit/tune/trial_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "tests/sanitized.h"

namespace fleetfit::tune {
namespace {

using End = TrialOutcome::End;
using std::chrono::milliseconds;
using testing::HasSubstr;

std::string content(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void wait_for(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(5));
}

class TrialProcess : public testing::Test {
 protected:
  TrialJob job(const std::string& script) const {
    return {.command = {"sh", "-c", script},
            .study = "s",
            .trial = 3,
            .checkpoint_folder = folder_.path() / "3",
            .log = folder_.path() / "3.log"};
  }
  TrialOutcome run(const TrialJob& job, const TrialProcessOptions& options = {}) const {
    return run_trial(job, {}, {}, options).value();
  }
  TrialOutcome run(const std::string& script) const { return run(job(script)); }

  bool exists(const char* name) const { return std::filesystem::exists(folder_.path() / name); }

  core::ScratchFolder folder_ = core::ScratchFolder::create().value();
};

constexpr const char* kResult = R"(echo '{"result": {"accuracy": 0.5}}';)";

TEST_F(TrialProcess, GivesWhatTheProgramSays) {
  const auto outcome = run(
      R"(echo warming up; echo '{"epoch": 1, "accuracy": 0.25, "loss": 2}'; echo oops >&2
         echo '{"result": {"accuracy": 0.5, "loss": 1.5, "f1": 0.75, "model": "/m/a.onnx"}}')");
  EXPECT_EQ(outcome.end, End::finished) << outcome.reason;
  EXPECT_EQ(outcome.accuracy, 0.5);
  EXPECT_EQ(outcome.loss, 1.5);
  EXPECT_EQ(outcome.other.at("f1"), 0.75);
  EXPECT_EQ(outcome.model_file, "/m/a.onnx");
  ASSERT_EQ(outcome.epochs.size(), 1U);
  EXPECT_EQ(outcome.epochs[0].accuracy, 0.25);
  EXPECT_THAT(content(folder_.path() / "3.log"), HasSubstr("warming up\n"));
  EXPECT_THAT(content(folder_.path() / "3.log"), HasSubstr("oops\n"));
}

TEST_F(TrialProcess, FindsTheModelInTheCheckpointFolder) {
  auto asked = job(R"(cd "$FOLDER"; echo x >net.onnx
                      echo '{"result": {"accuracy": 1, "model": "net.onnx"}}')");
  asked.command.insert(asked.command.begin(),
                       {"env", "FOLDER=" + asked.checkpoint_folder.string()});
  EXPECT_EQ(run(asked).model_file, (asked.checkpoint_folder / "net.onnx").string());
}

TEST_F(TrialProcess, ToldItsBudgetAndFolder) {
  auto asked = job(R"(echo "$FLEETFIT_TRIAL"; )" + std::string(kResult));
  asked.budget = {.epochs = 7, .data_fraction = 0.5};
  asked.resume = true;
  EXPECT_EQ(run(asked).end, End::finished);
  const auto log = content(asked.log);
  EXPECT_THAT(log, HasSubstr(R"("epochs":7)"));
  EXPECT_THAT(log, HasSubstr(R"("resume":true)"));
  EXPECT_THAT(log, HasSubstr(asked.checkpoint_folder.string()));
}

TEST_F(TrialProcess, ListenersHearEpochsAndModelsMeanwhile) {
  std::vector<std::string> heard;
  const TrialListener listener{
      .on_epoch = [&](const auto& report) { heard.push_back(std::to_string(report.epoch)); },
      .on_model = [&](const auto& file) { heard.push_back(file); }};
  const auto asked =
      job(R"(echo '{"model": "/u.onnx"}'; echo '{"epoch": 1}'; )" + std::string(kResult));
  ASSERT_TRUE(run_trial(asked, listener, {}));
  EXPECT_THAT(heard, testing::ElementsAre("/u.onnx", "1"));
}

TEST_F(TrialProcess, FailuresHaveAReasonOfOneLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"true", "without a result"},
      {"echo rubbish; echo '{{{'; printf '\\377\\376\\n'", "without a result: rubbish | {{{ | ??"},
      {R"(echo '{"result": {"accuracy": NaN}}')", "not a finite number"},
      {R"(echo '{"result": {"loss": 1}}')", "no accuracy"},
      {std::string(kResult) + "echo first >&2; echo out of luck >&2; exit 3",
       "exit status 3: first | out of luck"},
      {std::string(kResult) + "kill -9 $$", "signal 9"},
  };
  for (const auto& [script, reason] : cases) {
    const auto outcome = run(script);
    EXPECT_EQ(outcome.end, End::failed) << script;
    EXPECT_THAT(outcome.reason, HasSubstr(reason));
    EXPECT_EQ(outcome.reason.find('\n'), std::string::npos);
  }
}

TEST_F(TrialProcess, AProgramThatIsNotThereIsAFailedTrial) {
  auto asked = job("");
  asked.command = {"/no/such/program"};
  const auto outcome = run(asked);
  EXPECT_EQ(outcome.end, End::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("cannot start /no/such/program: No such file"));
}

TEST_F(TrialProcess, ALineThatIsTooLongFailsAndEndsTheTrial) {
  const auto outcome =
      run(job("head -c 300000 /dev/zero | tr '\\0' x; sleep 100"), {.max_line_bytes = 100'000});
  EXPECT_EQ(outcome.end, End::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("a line of more than 100000 bytes"));
}

TEST_F(TrialProcess, TheLogIsKeptUpToALimit) {
  const auto outcome =
      run(job("for i in 1 2 3 4 5 6 7 8; do echo 0123456789; done; " + std::string(kResult)),
          {.max_log_bytes = 30});
  EXPECT_EQ(outcome.end, End::finished);
  EXPECT_LT(content(folder_.path() / "3.log").size(), 80U);
  EXPECT_THAT(content(folder_.path() / "3.log"), HasSubstr("not kept"));
}

TEST_F(TrialProcess, OneThatNeverEndsRunsOutOfTime) {
  auto asked = job("echo busy; sleep 100");
  asked.timeout_s = 0.1;
  const auto outcome = run(asked, {.grace = milliseconds(100)});
  EXPECT_EQ(outcome.end, End::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("longer than 0.1 s: busy"));
}

TEST_F(TrialProcess, AResultWithoutAnEndIsAFailure) {
  const auto outcome = run(job(std::string(kResult) + "sleep 100"), {.linger = milliseconds(50)});
  EXPECT_EQ(outcome.end, End::failed);
  EXPECT_THAT(outcome.reason, HasSubstr("did not end"));
}

TEST_F(TrialProcess, StoppedByRequest) {
  std::stop_source stop;
  const TrialListener listener{.on_epoch = [&](const auto&) { stop.request_stop(); }};
  const auto asked = job(R"(trap 'echo told; exit 0' TERM; echo '{"epoch": 1}'; sleep 100 & wait)");
  const auto outcome = run_trial(asked, listener, stop.get_token()).value();
  EXPECT_EQ(outcome.end, End::stopped);
  EXPECT_THAT(content(asked.log), HasSubstr("told"));
}

TEST_F(TrialProcess, OneThatDoesNotListenIsKilled) {
  std::stop_source stop;
  const TrialListener listener{.on_epoch = [&](const auto&) { stop.request_stop(); }};
  const auto asked = job(R"(trap '' TERM; echo '{"epoch": 1}'; while true; do sleep 0.02; done)");
  const auto outcome =
      run_trial(asked, listener, stop.get_token(), {.grace = milliseconds(50)}).value();
  EXPECT_EQ(outcome.end, End::stopped);
}

TEST_F(TrialProcess, NothingThatItStartedStaysBehind) {
  const auto pids = folder_.path() / "pids";
  const auto outcome = run("sleep 1000 & echo $! >>" + pids.string() +
                           "; setsid sleep 1000 & echo $! >>" + pids.string() + "; " + kResult);
  EXPECT_EQ(outcome.end, End::finished) << outcome.reason;
  std::ifstream in(pids);
  int pid = 0;
  int seen = 0;
  for (; in >> pid; ++seen) EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_EQ(seen, 2);
}

TEST_F(TrialProcess, CpuTimeCountsWhatItStarted) {
  const auto outcome =
      run("sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; " + std::string(kResult));
  EXPECT_GT(outcome.cpu_s, 0.005);
  EXPECT_GT(outcome.elapsed_s, 0);
}

TEST_F(TrialProcess, MemoryIsLimited) {
  auto asked = job("exec python3 -c 'x = bytearray(1 << 29); x[::4096] = b\"1\" * (1 << 17)'");
  asked.memory_bytes = std::int64_t{100} << 20;
  EXPECT_EQ(run(asked).end, End::failed);
}

TEST_F(TrialProcess, PinnedToItsCores) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) ++first;
  auto asked = job("grep Cpus_allowed_list /proc/self/status; " + std::string(kResult));
  asked.cores = {first};
  run(asked);
  EXPECT_THAT(content(asked.log), HasSubstr("Cpus_allowed_list:\t" + std::to_string(first) + "\n"));
}

TEST_F(TrialProcess, ALaterAttemptKillsWhatAnEarlierLeftRunning) {
  auto early = job("touch " + (folder_.path() / "early").string() + "; sleep 100; " + kResult);
  TrialOutcome early_outcome;
  std::thread first([&] { early_outcome = run(early); });
  wait_for([&] { return exists("early"); });
  auto late = job(kResult);
  late.attempt = 2;
  EXPECT_EQ(run(late).end, End::finished);
  first.join();
  EXPECT_EQ(early_outcome.end, End::failed);
}

TEST_F(TrialProcess, AnEarlierAttemptDoesNotComeAfterALaterOne) {
  auto late = job(kResult);
  late.attempt = 2;
  EXPECT_EQ(run(late).end, End::finished);
  const auto early = run_trial(job(kResult), {}, {});
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code, ErrorCode::cancelled);
}

TEST_F(TrialProcess, DiesWithTheProcessThatRunsIt) {
  if (kSanitized) GTEST_SKIP() << "forks a program with threads of the sanitizer";
  const auto pid_file = folder_.path() / "pid";
  const pid_t worker = ::fork();
  if (worker == 0) {
    static_cast<void>(run_trial(job("echo $$ >" + pid_file.string() + "; sleep 1000"), {}, {}));
    ::_exit(0);
  }
  wait_for([&] { return !content(pid_file).empty(); });
  const int trial = std::stoi(content(pid_file));
  ASSERT_EQ(::kill(trial, 0), 0);
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
  wait_for([&] { return ::kill(trial, 0) != 0; });
  EXPECT_NE(::kill(trial, 0), 0);
}

TEST_F(TrialProcess, AFolderThatCannotBeWrittenIsAnError) {
  auto asked = job(kResult);
  asked.checkpoint_folder = "/proc/nowhere/1";
  const auto outcome = run_trial(asked, {}, {});
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace fleetfit::tune
