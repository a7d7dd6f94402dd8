#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "fleetfit/core/file.h"
#include "fleetfit/store/store.h"
#include "store/sql/sqlite_connection.h"
#include "store/sql/sqlite_store.h"
#include "tests/core/temporary_folder.h"
#include "tests/source_dir.h"
#include "tests/store/example_fleet.h"
#include "tests/store/example_studies.h"
#include "tests/store/raw_database.h"

namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class SqliteMigrations : public testing::Test {
 protected:
  Status bring_to(std::span<const Migration> migrations) {
    auto connection = SqliteConnection::open(path_, std::chrono::seconds(5)).value();
    return bring_up_to_date(*connection, {.application_id = 77, .migrations = migrations});
  }

  // Seconds in text, as a program before all versions would have kept them.
  void write_version_0() {
    RawDatabase database(path_);
    database.execute(
        "CREATE TABLE times (model TEXT, seconds TEXT);"
        "INSERT INTO times VALUES ('a', '0.25'), ('b', '2');"
        "PRAGMA application_id = 77");
  }

  core::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "old.db";
};

constexpr Migration kToMilliseconds = {
    "CREATE TABLE latencies (model TEXT PRIMARY KEY, ms REAL NOT NULL) STRICT;"
    "INSERT INTO latencies SELECT model, 1000 * CAST(seconds AS REAL) FROM times;"
    "DROP TABLE times"};
constexpr Migration kWithDevice = {
    "ALTER TABLE latencies ADD COLUMN device TEXT NOT NULL DEFAULT 'local'"};
constexpr Migration kBroken = {"DROP TABLE latencies; INSERT INTO nowhere VALUES (1)"};

TEST_F(SqliteMigrations, TakeAnOldDatabaseThroughAllVersions) {
  write_version_0();
  const Migration migrations[] = {kToMilliseconds, kWithDevice};
  ASSERT_TRUE(bring_to(migrations));
  RawDatabase database(path_);
  EXPECT_THAT(database.rows("SELECT model || ' ' || ms || ' ' || device FROM latencies"),
              UnorderedElementsAre("a 250.0 local", "b 2000.0 local"));
  EXPECT_EQ(database.value("PRAGMA user_version"), "2");
}

TEST_F(SqliteMigrations, RunOnlyWhatTheDatabaseHasNotSeen) {
  write_version_0();
  ASSERT_TRUE(bring_to({&kToMilliseconds, 1}));
  EXPECT_EQ(RawDatabase(path_).value("PRAGMA user_version"), "1");
  ASSERT_TRUE(bring_to({&kToMilliseconds, 1}));
  const Migration migrations[] = {kToMilliseconds, kWithDevice};
  ASSERT_TRUE(bring_to(migrations));
  ASSERT_TRUE(bring_to(migrations));
  EXPECT_EQ(RawDatabase(path_).value("SELECT count(*) FROM latencies WHERE device = 'local'"), "2");
}

TEST_F(SqliteMigrations, LeaveTheDatabaseAsItWasWhenOneOfThemFails) {
  write_version_0();
  const Migration migrations[] = {kToMilliseconds, kBroken};
  const auto failed = bring_to(migrations);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("migration to schema version 2"));
  EXPECT_THAT(failed.error().message, HasSubstr("old.db"));
  RawDatabase database(path_);
  EXPECT_THAT(database.rows("SELECT name FROM sqlite_schema"), ElementsAre("times"));
  EXPECT_THAT(database.rows("SELECT seconds FROM times"), ElementsAre("0.25", "2"));
  EXPECT_EQ(database.value("PRAGMA user_version"), "0");
}

TEST_F(SqliteMigrations, RefuseADatabaseOfANewerVersion) {
  write_version_0();
  RawDatabase(path_).execute("PRAGMA user_version = 3");
  const auto before = core::read_file(path_).value();
  const auto refused = bring_to({&kToMilliseconds, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_EQ(
      refused.error().message,
      path_.string() + ": it was written by a newer fleetfit (schema version 3, this one knows 1)");
  EXPECT_TRUE(core::read_file(path_).value() == before) << "it was changed";
}

class SqliteSchemaVersions : public testing::Test {
 protected:
  std::string url() const { return "sqlite:" + path_.string(); }

  core::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path() / "store.db";
};

TEST_F(SqliteSchemaVersions, AreInNewFiles) {
  ASSERT_TRUE(open_store(url()));
  RawDatabase database(path_);
  EXPECT_EQ(database.value("PRAGMA user_version"), "4");
  EXPECT_EQ(database.value("PRAGMA application_id"), "1717987700");  // "ffit" read as a number
  EXPECT_EQ(database.value("PRAGMA journal_mode"), "wal");
}

TEST_F(SqliteSchemaVersions, RefuseAStoreOfANewerFleetfit) {
  ASSERT_TRUE(open_store(url()));
  RawDatabase(path_).execute("PRAGMA user_version = 1000");
  const auto refused = open_store(url());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("newer fleetfit (schema version 1000"));
}

// A file of each released version is kept as SQL, and must be readable for ever.
TEST_F(SqliteSchemaVersions, Version1IsRead) {
  const std::filesystem::path source = source_dir() + "/tests/store/databases/version1.sql";
  RawDatabase(path_).execute(core::read_file(source).value());

  const auto store = open_store(url()).value();
  const DeviceRecord device{
      .name = "pi4", .fingerprint = "f00d", .settings = R"({"threads":4})", .created = date()};
  const ModelRecord model{
      .hash = "abc123", .name = "resnet18", .source = "zoo:resnet18", .bytes = 46'800'000};
  auto full = full_measurement();
  full.id = 7;
  const MeasurementRecord failed{.id = 9,
                                 .device = "pi4",
                                 .model_hash = "abc123",
                                 .status = MeasurementStatus::failed,
                                 .reason = "the runtime died",
                                 .started = date(-5)};
  const KernelChoiceRecord choice{
      .cpu = "a72", .key = "conv", .choice = "xnnpack", .ms = 0.5, .measured = date()};
  EXPECT_THAT(store->list_devices().value(), ElementsAre(device));
  EXPECT_THAT(store->list_models().value(), ElementsAre(model));
  EXPECT_THAT(store->list_measurements({}).value(), ElementsAre(full, failed));
  EXPECT_THAT(store->list_kernel_choices("a72").value(), ElementsAre(choice));
  EXPECT_EQ(store->add_measurement(plain_measurement()).value(), 10);
  EXPECT_TRUE(store->studies().list_studies()->empty());
  EXPECT_TRUE(store->studies().create_study(example_study()));
  EXPECT_EQ(store->fleet().count_jobs().value(), JobCounts{});
}

TEST_F(SqliteSchemaVersions, Version2IsRead) {
  const std::filesystem::path source = source_dir() + "/tests/store/databases/version2.sql";
  RawDatabase(path_).execute(core::read_file(source).value());

  const auto store = open_store(url()).value();
  auto& studies = store->studies();
  auto study = example_study();
  study.tuning_s = 2.5;
  study.tuning_j = 40;
  auto running = full_trial(0);
  running.change = 3;
  running.progress.clear();  // version 2 did not know it
  const TrialRecord queued{.number = 1, .change = 2};
  const InferenceRecord inference{.structure = "beef",
                                  .device_fingerprint = "f00d",
                                  .question = "single",
                                  .device = "pi4",
                                  .result = R"({"latency_ms":3})",
                                  .elapsed_s = 1.5,
                                  .study = "s",
                                  .found = date(1)};
  EXPECT_THAT(store->list_devices().value(), ElementsAre(DeviceRecord{.name = "pi4"}));
  EXPECT_THAT(studies.list_studies().value(), ElementsAre(study));
  EXPECT_THAT(studies.list_changes("s", 0, 9).value(), ElementsAre(queued, running));
  EXPECT_EQ(studies.count_trials("s").value(), (TrialCounts{.queued = 1, .running = 1}));
  EXPECT_EQ(studies.best_trials("s", 9)->size(), 1u);
  EXPECT_EQ(studies.lead_study("s", "other", date(9), date(10)), false);
  EXPECT_EQ(studies.claim_trials("s", "w", date(500), date(600), 9)->size(), 2u);
  EXPECT_THAT(studies.list_inferences("s").value(), ElementsAre(inference));
  ASSERT_TRUE(store->fleet().save_agents(std::vector{example_agent()}));
  EXPECT_EQ(store->fleet().add_jobs(std::vector{wanted_job()}).value(),
            std::vector<std::int64_t>{1});
}

TEST_F(SqliteSchemaVersions, Version3IsRead) {
  const std::filesystem::path source = source_dir() + "/tests/store/databases/version3.sql";
  RawDatabase(path_).execute(core::read_file(source).value());

  const auto store = open_store(url()).value();
  auto& fleet = store->fleet();
  auto token = example_token();
  token.id = 3;
  token.revoked = date(70);
  auto job = wanted_job();
  job.id = 8;
  job.key = "k";
  job.state = JobState::running;
  job.attempt = 1;
  job.lease = date(90);
  job.started = date(5);
  auto event = example_event(6);
  event.id = 20;
  event.device_time.reset();  // version 3 knew one time, and not who had registered an agent
  auto agent = example_agent();
  agent.token = 0;
  token.devices = kDevicesOfToken;
  auto entry = example_entry();
  entry.id = 4;
  EXPECT_THAT(fleet.list_tokens().value(), ElementsAre(token));
  EXPECT_THAT(fleet.list_agents({.query = "cortex"}).value(), ElementsAre(agent));
  EXPECT_THAT(fleet.list_jobs({}).value(), ElementsAre(job));
  EXPECT_EQ(fleet.count_jobs().value(), (JobCounts{.running = 1}));
  EXPECT_EQ(fleet.count_jobs_of("pi4").value(), (JobCounts{.running = 1}));
  EXPECT_THAT(fleet.list_events({}).value(), ElementsAre(event));
  EXPECT_EQ(fleet.last_sequence("pi4"), 6);
  EXPECT_THAT(fleet.list_files(9).value(), ElementsAre(example_file()));
  EXPECT_THAT(fleet.list_audit(0, 9).value(), ElementsAre(entry));
  EXPECT_THAT(fleet.add_jobs(std::vector{job, wanted_job()}).value(), ElementsAre(8, 9));
}

TEST_F(SqliteSchemaVersions, AreDescribedColumnByColumn) {
  ASSERT_TRUE(open_store(url()));
  const auto page = core::read_file(source_dir() + "/docs/formats/store.md").value();
  const auto columns = RawDatabase(path_).rows(
      "SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_info(t.name) c "
      "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'");
  EXPECT_EQ(columns.size(), 4u + 4u + 23u + 6u + 5u + 5u + 13u + 16u + 14u + 9u +
                                // of the fleet
                                2u + 9u + 8u + 2u + 16u + 6u + 8u + 2u + 5u + 6u);
  for (const auto& column : columns) {
    const auto table = page.find("### `" + column.substr(0, column.find('.')) + "`");
    ASSERT_NE(table, std::string::npos) << column;
    const auto section = page.substr(table, page.find("\n##", table) - table);
    EXPECT_THAT(section, HasSubstr("| `" + column.substr(column.find('.') + 1) + "` |")) << column;
  }
}

}  // namespace
}  // namespace fleetfit::store
