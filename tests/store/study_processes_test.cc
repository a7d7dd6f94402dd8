#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "fleetfit/core/process.h"
#include "fleetfit/store/store.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_studies.h"
#include "tests/store/postgres_for_tests.h"
#include "tests/store/raw_database.h"

namespace fleetfit::store {
namespace {

using namespace std::chrono_literals;

constexpr int kWorkers = 8;
constexpr int kKillsOfEach = 10;

/// Where the study is, and how large it is: processes are killed as long as it lasts.
struct Place {
  std::string name;
  std::int64_t trials;
};

void PrintTo(const Place& place, std::ostream* stream) { *stream << place.name; }

/// Follows a study as tuners do: keeps the newest state of each trial.
class Follower {
 public:
  // What has changed since the last call.
  void follow(StudyStore& studies) {
    for (;;) {
      const auto changes = studies.list_changes("s", since_, 100).value();
      if (changes.empty()) return;
      for (const auto& trial : changes) {
        EXPECT_GT(trial.change, since_);
        since_ = trial.change;
        newest_.insert_or_assign(trial.number, trial);
      }
    }
  }

  std::vector<TrialRecord> trials() const {
    std::vector<TrialRecord> trials;
    for (const auto& [number, trial] : newest_) trials.push_back(trial);
    return trials;
  }
  std::int64_t last_change() const { return since_; }

 private:
  std::int64_t since_ = 0;
  std::map<std::int64_t, TrialRecord> newest_;
};

class StudyProcesses : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    url_ = is_file() ? "sqlite:" + path_.string() : new_postgres_store();
    if (url_.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    store_ = open_store(url_).value();
    ASSERT_TRUE(studies().create_study(example_study()));
    ASSERT_EQ(studies().add_trials("s", queued_trials(0, trials())), true);
  }

  static bool is_file() { return GetParam().name == "sqlite"; }
  static std::int64_t trials() { return GetParam().trials; }
  StudyStore& studies() { return store_->studies(); }

  // One worker after another: the first ones are killed at random moments.
  void run_workers(int index) {
    std::minstd_rand random(static_cast<unsigned>(index) + 1);
    std::uniform_int_distribution<int> lifetime_ms(20, 120);
    for (int i = 0; i <= kKillsOfEach; ++i) {
      auto worker =
          core::Process::start(
              {STUDY_WORKER, url_, "s", "worker" + std::to_string(index) + "." + std::to_string(i)})
              .value();
      if (i < kKillsOfEach) {
        std::this_thread::sleep_for(std::chrono::milliseconds(lifetime_ms(random)));
        ::kill(worker.pid(), SIGKILL);
      }
      keep_confirmed(worker);
      const auto status = worker.wait(120s);
      ASSERT_TRUE(status);
      EXPECT_TRUE(status->signal == SIGKILL || status->succeeded()) << worker.error_output();
    }
  }

  void keep_confirmed(core::Process& worker) {
    for (;;) {
      const auto line = worker.read_line(120s);
      if (!line || !*line) return;
      const std::scoped_lock lock(mutex_);
      ++confirmed_[**line];
    }
  }

  core::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "store.db";
  std::string url_;
  std::unique_ptr<Store> store_;
  std::mutex mutex_;
  std::map<std::string, int> confirmed_;  // "TRIAL LEVEL", how often
};

TEST_P(StudyProcesses, KilledAtRandomLoseNoTrialAndEndNoLevelTwice) {
  const std::int64_t count = trials();
  Follower follower;
  {
    std::atomic<bool> working = true;
    const std::jthread following([&] {
      while (working) {
        follower.follow(studies());
        std::this_thread::sleep_for(2ms);
      }
    });
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < kWorkers; ++i) workers.emplace_back([this, i] { run_workers(i); });
    }
    working = false;
  }
  follower.follow(studies());

  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.finished = count}));
  const auto ended = studies().list_trials("s", 0, 2 * count, LevelDetail::all).value();
  ASSERT_EQ(ended.size(), static_cast<std::size_t>(count));
  for (const auto& trial : ended) {
    ASSERT_EQ(trial.state, TrialState::finished);
    ASSERT_EQ(trial.levels.size(), 2u);
    for (const auto& level : trial.levels)
      EXPECT_EQ(level.accuracy, static_cast<double>(trial.number));
  }
  EXPECT_TRUE(follower.trials() == ended) << "a follower has missed a change";
  EXPECT_GE(follower.last_change(), count * 7) << "add, twice claim, level and decision";
  // Killed between the store's answer and the line that tells of it, a worker confirms nothing.
  EXPECT_LE(confirmed_.size(), static_cast<std::size_t>(2 * count));
  EXPECT_GE(confirmed_.size() + kWorkers * kKillsOfEach, static_cast<std::size_t>(2 * count));
  for (const auto& [line, times] : confirmed_) EXPECT_EQ(times, 1) << line;

  if (!is_file()) return;
  RawDatabase database(path_);
  EXPECT_EQ(database.value("PRAGMA integrity_check"), "ok");
  EXPECT_TRUE(database.rows("PRAGMA foreign_key_check").empty());
  EXPECT_EQ(database.value("SELECT change FROM study_progress"),
            std::to_string(follower.last_change()));
}

INSTANTIATE_TEST_SUITE_P(Places, StudyProcesses,
                         testing::Values(Place{.name = "sqlite", .trials = 2000},
                                         Place{.name = "postgres", .trials = 400}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace fleetfit::store
