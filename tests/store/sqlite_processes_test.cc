#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "fleetfit/core/process.h"
#include "fleetfit/store/store.h"
#include "store/sql/sqlite_store.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_records.h"
#include "tests/store/raw_database.h"

namespace fleetfit::store {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

struct Work {
  std::string device;
  int batches;
  int size;
  int operators;
};

class SqliteProcesses : public testing::Test {
 protected:
  core::Process start_writer(const Work& work) {
    return core::Process::start({STORE_WRITER, "sqlite:" + path_.string(), work.device,
                                 std::to_string(work.batches), std::to_string(work.size),
                                 std::to_string(work.operators)})
        .value();
  }

  // The last number that it prints until its end.
  static int last_confirmed(core::Process& writer, int confirmed) {
    for (;;) {
      const auto line = writer.read_line(120s);
      if (!line || !*line) return confirmed;
      confirmed = std::stoi(**line);
    }
  }

  void expect_success(core::Process& writer) {
    last_confirmed(writer, 0);
    const auto status = writer.wait(120s);
    ASSERT_TRUE(status);
    EXPECT_TRUE(status->succeeded()) << to_string(*status) << ": " << writer.error_output();
  }

  std::vector<MeasurementRecord> stored(const std::string& device) {
    return open_sqlite_store(path_).value()->list_measurements({.device = device}).value();
  }

  void expect_sound() {
    RawDatabase database(path_);
    EXPECT_EQ(database.value("PRAGMA integrity_check"), "ok");
    EXPECT_TRUE(database.rows("PRAGMA foreign_key_check").empty());
  }

  core::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "store.db";
};

TEST_F(SqliteProcesses, LoseNothingWhenTheyWriteAtOnce) {
  std::vector<core::Process> writers;
  for (const char* device : {"a", "b", "c"})
    writers.push_back(start_writer({.device = device, .batches = 20, .size = 3, .operators = 20}));
  for (auto& writer : writers) expect_success(writer);

  for (const char* device : {"a", "b", "c"}) {
    const auto measurements = stored(device);
    EXPECT_EQ(measurements.size(), 60u);
    EXPECT_THAT(measurements, Each(Field(&MeasurementRecord::operators, example_operators(20))));
  }
  expect_sound();
}

TEST_F(SqliteProcesses, MayAllCreateTheFileAtOnce) {
  constexpr int kWriters = 6;
  for (int round = 0; round < 5; ++round) {
    std::filesystem::remove(path_);
    std::vector<core::Process> writers;
    for (int i = 0; i < kWriters; ++i)
      writers.push_back(start_writer({.device = "a", .batches = 1, .size = 1, .operators = 1}));
    for (auto& writer : writers) expect_success(writer);
    EXPECT_EQ(stored("a").size(), static_cast<std::size_t>(kWriters));
  }
}

TEST_F(SqliteProcesses, WaitForTheOneThatIsJustCreatingTheFile) {
  RawDatabase creator(path_);
  creator.execute("BEGIN IMMEDIATE");
  const std::jthread creation([&] {
    std::this_thread::sleep_for(200ms);
    creator.execute("ROLLBACK");
  });
  const auto store = open_sqlite_store(path_);
  EXPECT_TRUE(store) << store.error().message;
}

// The moments at which the writer dies differ: while it writes rows, commits, or moves the log into
// the file. Large batches outgrow SQLite's memory, so that uncommitted pages are in the log.
TEST_F(SqliteProcesses, KilledWhileWritingLoseNothingThatWasConfirmed) {
  for (int round = 0; round < 12; ++round) {
    const std::string device = "killed" + std::to_string(round);
    const Work work{.device = device,
                    .batches = 1'000'000,
                    .size = round % 6 == 5 ? 1000 : 20,
                    .operators = 50};
    auto writer = start_writer(work);
    int confirmed = 0;
    for (int i = 0; i <= round % 2; ++i)
      confirmed = std::stoi(writer.read_line(120s).value().value());
    std::this_thread::sleep_for(round * 700us);
    ASSERT_EQ(::kill(writer.pid(), SIGKILL), 0);
    confirmed = last_confirmed(writer, confirmed);
    ASSERT_EQ(writer.wait(120s), (core::ExitStatus{.signal = SIGKILL}));

    const auto measurements = stored(device);
    const int count = static_cast<int>(measurements.size());
    EXPECT_EQ(count % work.size, 0) << "a batch was torn";
    EXPECT_GE(count, confirmed * work.size);
    EXPECT_LE(count, (confirmed + 1) * work.size);
    EXPECT_THAT(measurements,
                Each(Field(&MeasurementRecord::operators, example_operators(work.operators))));
    expect_sound();
  }
}

TEST_F(SqliteProcesses, ReadWhileAnotherOneWrites) {
  auto store = open_sqlite_store(path_, {.patience = 50ms}).value();
  ASSERT_TRUE(store->save_device({.name = "a"}));
  RawDatabase other(path_);
  other.execute("BEGIN IMMEDIATE; DELETE FROM devices");
  EXPECT_EQ(store->list_devices().value().size(), 1u);
}

TEST_F(SqliteProcesses, SayThatAnotherOneKeepsTheFileLocked) {
  auto store = open_sqlite_store(path_, {.patience = 50ms}).value();
  {
    RawDatabase other(path_);
    other.execute("BEGIN IMMEDIATE");
    const auto single = store->save_device({.name = "a"});
    const auto batch = store->add_measurement(plain_measurement());
    ASSERT_FALSE(single);
    ASSERT_FALSE(batch);
    EXPECT_EQ(single.error().code, ErrorCode::io);
    EXPECT_EQ(single.error().message,
              path_.string() + ": another process has kept it locked for 50ms");
    EXPECT_EQ(batch.error(), single.error());
  }
  EXPECT_TRUE(store->save_device({.name = "a"}));
  EXPECT_TRUE(store->add_measurement(plain_measurement()));
}

}  // namespace
}  // namespace fleetfit::store
