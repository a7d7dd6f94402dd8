#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "fleetfit/store/store.h"
#include "store/sql/sqlite_store.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_studies.h"
#include "tests/store/raw_database.h"

namespace fleetfit::store {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// While it lives, files of this process cannot grow beyond a size, as if the disk were full.
class FullDisk {
 public:
  explicit FullDisk(std::uintmax_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

class StudyTrouble : public testing::Test {
 protected:
  void SetUp() override {
    store_ = open_sqlite_store(path_, {.patience = 50ms}).value();
    ASSERT_TRUE(studies().create_study(example_study()));
    ASSERT_EQ(studies().add_trials("s", queued_trials(0, 3)), true);
  }

  StudyStore& studies() { return store_->studies(); }

  std::uintmax_t log_bytes() const { return fs::file_size(path_.string() + "-wal"); }

  std::vector<TrialRecord> trials() {
    return studies().list_trials("s", 0, 10'000, LevelDetail::all).value();
  }

  void expect_sound() const { EXPECT_EQ(RawDatabase(path_).value("PRAGMA integrity_check"), "ok"); }

  core::TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "store.db";
  std::unique_ptr<Store> store_;
};

TEST_F(StudyTrouble, AFullDiskIsSaidAndWorkGoesOnWhenThereIsRoom) {
  const auto claimed = studies().claim_trial("s", "a", date(), date(1000)).value().value();
  const Claim claim{.study = "s", .trial = claimed.number, .worker = "a", .attempt = 1};
  const auto before = trials();
  const auto many = queued_trials(3, 500);
  {
    // Room for one page of the log, and for three more: a commit fails at its first write and in
    // its middle.
    for (const std::uintmax_t room : {100, 13'000}) {
      const FullDisk full(log_bytes() + room);
      const auto level = studies().end_level(claim, example_level(), "");
      const auto added = studies().add_trials("s", many);
      if (!level) {
        EXPECT_EQ(level.error().code, ErrorCode::io);
      }
      ASSERT_FALSE(added);
      EXPECT_EQ(added.error().code, ErrorCode::io);
      EXPECT_THAT(added.error().message,
                  AnyOf(path_.string() + ": the disk is full",
                        HasSubstr(path_.string() + ": the system refused to write it")));
      EXPECT_EQ(trials().size(), before.size());
    }
  }
  if (trials() == before) {
    EXPECT_EQ(studies().end_level(claim, example_level(), ""), Hold::held);
  }
  EXPECT_EQ(studies().add_trials("s", many), true);
  EXPECT_EQ(studies().count_trials("s").value(), (TrialCounts{.queued = 502, .paused = 1}));
  EXPECT_EQ(studies().find_trial("s", 0).value()->levels.size(), 1u);
  expect_sound();
}

TEST_F(StudyTrouble, ARemovedStoreIsSaidAndWorkGoesOnWhenItIsBack) {
  const auto before = trials();
  const auto away = folder_.path() / "away.db";
  fs::rename(path_, away);
  const std::string message = path_.string() + ": it was removed or replaced while it was in use";
  const auto added = studies().add_trials("s", queued_trials(3, 1));
  const auto updated = studies().update_study("s", 1, 1, false);
  const auto changes = studies().list_changes("s", 0, 1);
  ASSERT_FALSE(added);
  ASSERT_FALSE(updated);
  ASSERT_FALSE(changes);
  EXPECT_EQ(added.error(), (Error{ErrorCode::io, message}));
  EXPECT_EQ(updated.error(), added.error());
  EXPECT_EQ(changes.error(), added.error());

  fs::rename(away, path_);
  EXPECT_EQ(trials(), before);
  EXPECT_EQ(studies().add_trials("s", queued_trials(3, 1)), true);
  expect_sound();
}

TEST_F(StudyTrouble, ALockedStoreIsSaidAndWorkGoesOnWhenItIsFree) {
  {
    RawDatabase other(path_);
    other.execute("BEGIN IMMEDIATE");
    const auto claimed = studies().claim_trial("s", "a", date(), date(1));
    ASSERT_FALSE(claimed);
    EXPECT_EQ(claimed.error().code, ErrorCode::io);
    EXPECT_EQ(claimed.error().message,
              path_.string() + ": another process has kept it locked for 50ms");
    EXPECT_EQ(trials().size(), 3u) << "reading needs no lock";
  }
  EXPECT_EQ(studies().claim_trial("s", "a", date(), date(1)).value()->attempts, 1);
}

TEST_F(StudyTrouble, AStateThatNobodyKnowsIsDamage) {
  RawDatabase(path_).execute(
      "PRAGMA ignore_check_constraints = ON; UPDATE trials SET state = 'lost' WHERE number = 1");
  const auto found = studies().list_trials("s", 0, 9, LevelDetail::none);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(found.error().message, HasSubstr("store.db: trial 1: 'lost' is no state of a trial"));
}

}  // namespace
}  // namespace fleetfit::store
