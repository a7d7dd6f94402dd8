#include "fleetfit/tune/worker.h"
#include "fleetfit/store/gone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <thread>

#include "fleetfit/core/file.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/store/store.h"
#include "fleetfit/tune/patience.h"

namespace fleetfit::tune {
namespace {

using std::chrono::milliseconds;
using store::TrialRecord;
using store::TrialState;
using testing::HasSubstr;

constexpr const char* kResult = R"(echo '{"result": {"accuracy": 0.5, "f1": 0.25}}')";

class Worker : public testing::Test {
 protected:
  Worker() {
    study_.name = "s";
    study_.budget = {.kind = BudgetKind::epochs, .min_epochs = 1, .max_epochs = 4, .eta = 2};
    EXPECT_TRUE(studies().create_study({.name = "s", .definition = "d"}));
  }

  store::StudyStore& studies() { return store_->studies(); }

  void add(std::vector<TrialRecord> trials) {
    for (std::size_t i = 0; i < trials.size(); ++i) trials[i].number = static_cast<int>(i);
    ASSERT_TRUE(studies().add_trials("s", trials).value());
  }

  TrialRecord trial(std::int64_t number) { return studies().find_trial("s", number)->value(); }

  WorkerOptions options(const std::string& script) const {
    return {.name = "w1",
            .command = {"sh", "-c", script},
            .folder = folder_.path(),
            .lease = milliseconds(300)};
  }

  /// Works until no trial is queued or running.
  void work(const std::string& script, const WorkerHooks& hooks = {}) {
    std::stop_source stop;
    std::jthread watcher([&] {
      for (int i = 0; i < 4000; ++i) {
        const auto counts = studies().count_trials("s").value();
        if (counts.queued + counts.running == 0) break;
        std::this_thread::sleep_for(milliseconds(2));
      }
      stop.request_stop();
    });
    EXPECT_TRUE(work_on_study(studies(), study_, clock_, options(script), hooks, stop.get_token()));
  }

  core::ScratchFolder folder_ = core::ScratchFolder::create().value();
  std::unique_ptr<store::Store> store_ = store::open_store("memory:").value();
  core::SystemClock clock_;
  Study study_;
};

TEST_F(Worker, WritesWhatALevelHasReached) {
  add({{.level = 1}});
  work(R"(echo '{"epoch": 1, "accuracy": 0.25}'; echo '{"epoch": 2}'; )" + std::string(kResult));
  const auto done = trial(0);
  EXPECT_EQ(done.state, TrialState::paused);
  ASSERT_EQ(done.levels.size(), 1U);
  EXPECT_EQ(done.levels[0].level, 1);
  EXPECT_EQ(done.levels[0].epochs, 2);
  EXPECT_EQ(done.levels[0].accuracy, 0.5);
  EXPECT_EQ(done.levels[0].metrics, R"({"f1":0.25})");
  EXPECT_EQ(done.levels[0].epoch_values, "[0.25,0.25]");
  EXPECT_EQ(done.levels[0].worker, "w1");
  EXPECT_GE(done.levels[0].ended, done.levels[0].started);
  EXPECT_TRUE(done.levels[0].training_j.has_value());
}

TEST_F(Worker, TellsTheStoreHowFarARunningTrialIs) {
  add({{}});
  const auto seen = folder_.path() / "seen";
  std::jthread reader([&] {
    while (trial(0).progress != "epoch 2, accuracy 0.2500")
      std::this_thread::sleep_for(milliseconds(2));
    std::ofstream(seen) << "yes";
  });
  work(R"(echo '{"epoch": 2, "accuracy": 0.25}'; while [ ! -s )" + seen.string() +
       " ]; do sleep 0.01; done; " + kResult);
  EXPECT_EQ(trial(0).state, TrialState::paused);
  EXPECT_EQ(trial(0).progress, "");
}

TEST_F(Worker, AFailedTrialHasItsReason) {
  add({{}});
  work("echo no data >&2; exit 4");
  EXPECT_EQ(trial(0).state, TrialState::failed);
  EXPECT_EQ(trial(0).reason, "exit status 4: no data");
}

TEST_F(Worker, ResumesWhatHasACheckpoint) {
  add({{}, {}});
  std::filesystem::create_directories(folder_.path() / "1");
  std::ofstream(folder_.path() / "1" / "state") << "half";
  work(R"(echo "$FLEETFIT_TRIAL"; )" + std::string(kResult));
  const auto log = [&](const char* name) {
    std::ifstream in(folder_.path() / name);
    std::string text;
    std::getline(in, text);
    return text;
  };
  EXPECT_THAT(log("0.log"), HasSubstr(R"("resume":false)"));
  EXPECT_THAT(log("1.log"), HasSubstr(R"("resume":true)"));
}

TEST_F(Worker, GivesTheTrialBackWhenItIsStopped) {
  add({{}});
  std::stop_source stop;
  std::jthread stopper([&] {
    while (!std::filesystem::exists(folder_.path() / "0" / "begun"))
      std::this_thread::sleep_for(milliseconds(2));
    stop.request_stop();
  });
  const auto script = "touch " + (folder_.path() / "0" / "begun").string() + "; sleep 100";
  EXPECT_TRUE(work_on_study(studies(), study_, clock_, options(script), {}, stop.get_token()));
  EXPECT_EQ(trial(0).state, TrialState::queued);
  EXPECT_EQ(trial(0).attempts, 0);
}

TEST_F(Worker, GivesTheTrialBackThatIsToldToEndTogetherWithIt) {
  add({{}});
  std::stop_source stop;
  const auto mark = folder_.path() / "told";
  std::jthread stopper([&] {
    while (!std::filesystem::exists(mark)) std::this_thread::sleep_for(milliseconds(2));
    std::this_thread::sleep_for(milliseconds(30));  // the trial has ended by now, or soon will
    stop.request_stop();
  });
  const auto script = "touch " + mark.string() + "; kill -TERM $$; sleep 9";
  EXPECT_TRUE(work_on_study(studies(), study_, clock_, options(script), {}, stop.get_token()));
  EXPECT_EQ(trial(0).state, TrialState::queued);
  EXPECT_EQ(trial(0).attempts, 0);
}

TEST_F(Worker, ATrialThatEndsItselfBySigtermHasFailed) {
  add({{}});
  work("kill -TERM $$; sleep 9");
  EXPECT_EQ(trial(0).state, TrialState::failed);
  EXPECT_THAT(trial(0).reason, HasSubstr("signal 15"));
}

TEST_F(Worker, EndsWhenItHasHadNothingToDoForLong) {
  auto impatient = options("true");
  impatient.idle_limit = std::chrono::seconds(0);
  EXPECT_TRUE(work_on_study(studies(), study_, clock_, impatient, {}, {}));
  EXPECT_FALSE(studies().find_study("s").value()->done);
}

TEST_F(Worker, StopsATrialThatIsToStop) {
  add({{}});
  std::jthread asker([&] {
    while (!studies().request_stop("s", 0, "too slow").value_or(false))
      std::this_thread::sleep_for(milliseconds(2));
  });
  work("sleep 100");
  EXPECT_EQ(trial(0).state, TrialState::stopped);
  EXPECT_EQ(trial(0).reason, "too slow");
}

TEST_F(Worker, TakesOverFromOneThatHasDied) {
  add({{}});
  const auto now = std::chrono::floor<milliseconds>(clock_.date());
  ASSERT_TRUE(studies().claim_trial("s", "dead", now, now + milliseconds(50))->has_value());
  work(kResult);
  EXPECT_EQ(trial(0).state, TrialState::paused);
  EXPECT_EQ(trial(0).attempts, 2);
}

TEST_F(Worker, GivesUpATrialThatKillsItsWorkers) {
  add({{.attempts = 20}});
  work(kResult);
  EXPECT_EQ(trial(0).state, TrialState::failed);
  EXPECT_THAT(trial(0).reason, HasSubstr("died 20 times"));
}

TEST_F(Worker, TellsTheStructureOfTheNetwork) {
  study_.inference.emplace();
  add({{}});
  work(R"(echo '{"model": "/untrained.onnx"}'; echo '{"result": {"accuracy": 1, "model": "/m"}}')",
       {.structure_of = [](const auto& file) { return "structure of " + file.string(); }});
  EXPECT_EQ(trial(0).structure, "structure of /untrained.onnx");
  EXPECT_EQ(trial(0).model_file, "/m");
}

TEST_F(Worker, AResultWithoutAModelFailsIfInferenceIsTuned) {
  study_.inference.emplace();
  add({{}});
  work(kResult, {.structure_of = [](const auto&) { return std::string("x"); }});
  EXPECT_EQ(trial(0).state, TrialState::failed);
  EXPECT_THAT(trial(0).reason, HasSubstr("names no model"));
}

TEST_F(Worker, EndsWhenTheStudyIsDone) {
  ASSERT_TRUE(studies().update_study("s", 0, std::nullopt, true));
  EXPECT_TRUE(work_on_study(studies(), study_, clock_, options(kResult), {}, {}));
}

TEST_F(Worker, AFolderThatCannotBeWrittenIsWaitedFor) {
  add({{}});
  std::vector<std::string> said;
  auto asked = options(kResult);
  asked.folder = "/proc/nowhere";
  std::stop_source stop;
  const WorkerHooks hooks{.say = [&](std::string_view text) {
    said.emplace_back(text);
    stop.request_stop();
  }};
  EXPECT_TRUE(work_on_study(studies(), study_, clock_, asked, hooks, stop.get_token()));
  EXPECT_EQ(trial(0).state, TrialState::queued);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("/proc/nowhere"));
}

TEST(Patience, SaysOnceThatItWaitsAndOnceThatItGoesOn) {
  std::vector<std::string> said;
  Patience patience([&](std::string_view text) { said.emplace_back(text); }, {});
  int calls = 0;
  const auto answer = patience.keep_trying([&]() -> Result<int> {
    if (++calls < 3) return fail(ErrorCode::io, "disk full");
    return 7;
  });
  EXPECT_EQ(answer.value(), 7);
  EXPECT_THAT(said, testing::ElementsAre(HasSubstr("disk full"), HasSubstr("again")));
}

TEST(Patience, EndsWithItsBound) {
  Patience patience({}, {}, {.most = std::chrono::milliseconds(0)});
  const auto answer = patience.keep_trying(
      []() -> Result<int> { return fail(ErrorCode::io, "another process has kept it locked"); });
  EXPECT_EQ(answer.error().code, ErrorCode::io);
  EXPECT_THAT(answer.error().message, HasSubstr("kept it locked; it did not come back within 0 s"));
}

TEST(Patience, WarnsOnceAlsoThoseWhoWantToSeeNothing) {
  int warnings = 0;
  Patience patience({}, {}, {.warn = [&](std::string_view) { ++warnings; }});
  int calls = 0;
  const auto answer = patience.keep_trying([&]() -> Result<int> {
    if (++calls < 4) return fail(ErrorCode::io, "disk full");
    return 7;
  });
  EXPECT_EQ(answer.value(), 7);
  EXPECT_EQ(warnings, 1);
}

TEST(Patience, DoesNotWaitForAStoreThatIsGone) {
  for (const auto reason : {store::kFileGone, store::kDatabaseGone, store::kSchemaGone}) {
    Patience patience([](std::string_view text) { ADD_FAILURE() << text; }, {});
    int calls = 0;
    const auto answer = patience.keep_trying([&]() -> Result<int> {
      ++calls;
      return fail(ErrorCode::io, "store.db: " + std::string(reason));
    });
    EXPECT_FALSE(answer);
    EXPECT_EQ(calls, 1);
  }
}

TEST(Patience, DoesNotWaitForWhatWillNotMend) {
  Patience patience({}, {});
  const auto answer = patience.keep_trying(
      []() -> Result<int> { return fail(ErrorCode::not_found, "no such study"); });
  EXPECT_EQ(answer.error().code, ErrorCode::not_found);
}

class SetClock final : public core::Clock {
 public:
  std::chrono::nanoseconds now() const override { return now_; }
  std::chrono::system_clock::time_point date() const override { return date_; }
  void pass(std::chrono::seconds time) {
    now_ += time;
    date_ += time;
  }
  void set_date_forward(std::chrono::seconds time) { date_ += time; }

 private:
  std::chrono::nanoseconds now_{0};
  std::chrono::system_clock::time_point date_{std::chrono::hours(1'000'000)};
};

TEST(LeaseClock, WaitsAsLongAgainForClocksThatDiffer) {
  SetClock clock;
  LeaseClock leases(clock, std::chrono::seconds(10));
  const auto end = leases.end_of_lease();
  clock.pass(std::chrono::seconds(19));
  EXPECT_LT(leases.run_out_before(), end);
  clock.pass(std::chrono::seconds(1));
  EXPECT_GE(leases.run_out_before(), end);
}

TEST(LeaseClock, AClockThatWasSetDoesNotMakeLeasesRunOut) {
  SetClock clock;
  LeaseClock leases(clock, std::chrono::seconds(10));
  const auto end = leases.end_of_lease();
  clock.set_date_forward(std::chrono::hours(1));
  EXPECT_LT(leases.run_out_before(), end);
  clock.pass(std::chrono::seconds(19));
  EXPECT_LT(leases.run_out_before(), end);
  clock.pass(std::chrono::seconds(2));
  EXPECT_GE(leases.run_out_before(), end);
}

}  // namespace
}  // namespace fleetfit::tune
