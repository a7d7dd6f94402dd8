#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "fleetfit/store/store.h"
#include "store/sql/postgres_connection.h"
#include "store/sql/postgres_store.h"
#include "tests/store/example_fleet.h"
#include "tests/store/example_records.h"
#include "tests/store/example_studies.h"
#include "tests/store/postgres_for_tests.h"

namespace fleetfit::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// What other stores cannot do or suffer.
class PostgresStore : public testing::Test {
 protected:
  void SetUp() override {
    url_ = new_postgres_store();
    if (url_.empty()) GTEST_SKIP() << "there is no server; tools/with-postgres starts one";
    raw_ = PostgresConnection::open(parse_postgres(url_).value()).value();
  }

  const std::string& schema() const { return raw_->address().schema; }
  void execute(const std::string& sql) {
    const auto done = raw_->execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string text(const std::string& sql) { return raw_->first<std::string>(sql).value().value(); }
  // All connections of this server but the one that asks.
  // Waits until they are gone.
  void cut_connections() {
    execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'fleetfit' AND pid <> pg_backend_pid()");
  }

  std::string url_;
  std::unique_ptr<PostgresConnection> raw_;
};

TEST_F(PostgresStore, KeepsRecordsUntilItIsOpenedAgain) {
  auto measurement = full_measurement();
  measurement.id = open_store(url_).value()->add_measurement(measurement).value();
  EXPECT_THAT(open_store(url_).value()->list_measurements({}).value(), ElementsAre(measurement));
}

TEST_F(PostgresStore, MayBeCreatedByManyAtOnce) {
  std::atomic<int> opened = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, name = "d" + std::to_string(i)] {
        const auto store = open_store(url_);
        ASSERT_TRUE(store) << store.error().message;
        ASSERT_TRUE((*store)->save_device({.name = name}));
        ++opened;
      });
  }
  EXPECT_EQ(opened, 6);
  EXPECT_EQ(open_store(url_).value()->list_devices().value().size(), 6u);
}

TEST_F(PostgresStore, LeavesASchemaOfAnotherProgramAlone) {
  execute("CREATE SCHEMA " + schema() + "; CREATE TABLE bookmarks (url TEXT)");
  const auto opened = open_store(url_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(opened.error().message, HasSubstr("is one of another program"));
  EXPECT_EQ(raw_->first<std::int64_t>("SELECT count(*) FROM pg_class c JOIN pg_namespace n "
                                      "ON n.oid = relnamespace WHERE nspname = ? AND relkind = 'r'",
                                      schema())
                .value(),
            1);
}

TEST_F(PostgresStore, RefusesTablesOfANewerFleetfit) {
  ASSERT_TRUE(open_store(url_));
  execute("UPDATE fleetfit_version SET version = 99");
  const auto opened = open_store(url_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unsupported);
  EXPECT_THAT(opened.error().message,
              HasSubstr("it was written by a newer fleetfit (schema version 99, this one knows"));
}

TEST_F(PostgresStore, IsBroughtFromVersionToVersionOrNotAtAll) {
  constexpr std::string_view kOld[] = {"CREATE TABLE a (x BIGINT)"};
  constexpr std::string_view kBroken[] = {kOld[0], "CREATE TABLE b (x BIGINT)", "CREATE NONSENSE"};
  constexpr std::string_view kNew[] = {kOld[0], "INSERT INTO a VALUES (7)",
                                       "UPDATE a SET x = x + 1"};
  ASSERT_TRUE(bring_up_to_date(*raw_, kOld));
  const auto broken = bring_up_to_date(*raw_, kBroken);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("migration to schema version 3"));
  EXPECT_EQ(text("SELECT coalesce(to_regclass('b')::text, 'none')"), "none");
  EXPECT_EQ(text("SELECT version::text FROM fleetfit_version"), "1");
  ASSERT_TRUE(bring_up_to_date(*raw_, kNew));
  ASSERT_TRUE(bring_up_to_date(*raw_, kNew));
  EXPECT_EQ(text("SELECT x::text FROM a"), "8");
}

TEST_F(PostgresStore, BringsTablesOfVersion1UpToDate) {
  ASSERT_TRUE(bring_up_to_date(*raw_, postgres_migrations().first(1)));
  execute("INSERT INTO devices VALUES ('pi4', 'f', '{}', 7)");
  const auto store = open_store(url_).value();
  EXPECT_EQ(store->list_devices()->size(), 1u);
  ASSERT_TRUE(store->fleet().save_agents(std::vector{example_agent()}));
  EXPECT_THAT(store->fleet().add_jobs(std::vector{wanted_job()}).value(), ElementsAre(1));
  EXPECT_EQ(text("SELECT version::text FROM fleetfit_version"), "3");
}

TEST_F(PostgresStore, BringsAFleetOfVersion2UpToDate) {
  ASSERT_TRUE(bring_up_to_date(*raw_, postgres_migrations().first(2)));
  execute("INSERT INTO tokens VALUES (3, 't', 'agent', repeat('a', 64), '', 7, NULL, NULL)");
  execute("INSERT INTO agents VALUES ('pi4', '', '', 'pi4', '{}', 7, 8)");
  execute("INSERT INTO agent_probes VALUES ('pi4', '{}')");
  execute("INSERT INTO events VALUES (20, 'pi4', 6, NULL, 'switch', '{}', 60)");
  const auto store = open_store(url_).value();
  auto& fleet = store->fleet();
  EXPECT_EQ(fleet.list_tokens()->at(0).devices, kDevicesOfToken);
  EXPECT_EQ(fleet.find_agent("pi4").value()->token, 0);
  EXPECT_EQ(fleet.list_events({})->at(0).device_time, std::nullopt);
  EXPECT_EQ(fleet.list_events({})->at(0).time.time_since_epoch().count(), 60);
  ASSERT_TRUE(fleet.save_agents(std::vector{example_agent("pi5")}));
  EXPECT_EQ(fleet.count_agents_of(example_agent().token), 1);
}

TEST_F(PostgresStore, SaysWhichTableIsMissing) {
  const auto store = open_store(url_).value();
  execute("DROP TABLE devices");
  const auto listed = store->list_devices();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(listed.error().message, HasSubstr("\"devices\" does not exist"));
  EXPECT_TRUE(store->list_models()) << "goes on with what there is";
}

TEST_F(PostgresStore, IsReachedOverTls) {
  if (environment("FLEETFIT_TEST_POSTGRES_TLS").empty())
    GTEST_SKIP() << "the server has no certificate; tools/with-postgres makes one by openssl";
  const auto over_tcp = environment("FLEETFIT_TEST_POSTGRES_TCP") + "?sslmode=require&schema=tls";
  const auto connection = PostgresConnection::open(parse_postgres(over_tcp).value());
  ASSERT_TRUE(connection) << connection.error().message;
  EXPECT_EQ(
      (*connection)
          ->first<std::string>("SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
          .value(),
      "true");
  // Its certificate is signed by nobody.
  const auto checked = open_store(environment("FLEETFIT_TEST_POSTGRES_TCP") +
                                  "?sslmode=verify-full&sslrootcert=/dev/null");
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::io);
}

TEST_F(PostgresStore, TakesBatchesLongerThanWhatIsInFlight) {
  const auto store = open_store(url_).value();
  ASSERT_TRUE(store->studies().create_study(example_study("s")));
  ASSERT_EQ(store->studies().add_trials("s", queued_trials(0, 3000)), true);
  EXPECT_EQ(store->studies().claim_trials("s", "w", date(), date(1), 2000).value().size(), 2000u);
  EXPECT_EQ(store->studies().count_trials("s").value(),
            (TrialCounts{.queued = 1000, .running = 2000}));
}

TEST_F(PostgresStore, ConnectsAnewWhenIdleConnectionsWereCut) {
  const auto store = open_store(url_).value();
  ASSERT_TRUE(store->save_device({.name = "a"}));
  cut_connections();
  std::this_thread::sleep_for(50ms);  // until the server has hung up
  EXPECT_TRUE(store->save_device({.name = "b"}));
  EXPECT_EQ(store->list_devices().value().size(), 2u);
}

TEST_F(PostgresStore, LosesNothingThatWasConfirmedWhenConnectionsAreCut) {
  const auto store = open_store(url_).value();
  ASSERT_TRUE(store->studies().create_study(example_study("s")));
  std::atomic<bool> working = true;
  std::vector<std::string> confirmed;
  int failures = 0;
  {
    const std::jthread writer([&] {
      for (int i = 0; working; ++i) {
        const auto name = "d" + std::to_string(i);
        const auto saved = store->save_kernel_choices(
            std::vector<KernelChoiceRecord>{{.cpu = name, .key = "a"}, {.cpu = name, .key = "b"}});
        if (saved) confirmed.push_back(name);
        failures += saved ? 0 : 1;
        EXPECT_TRUE(saved || saved.error().code == ErrorCode::io);
      }
    });
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(20ms);
      cut_connections();
    }
    working = false;
  }
  EXPECT_GT(confirmed.size(), 20u);
  EXPECT_GT(failures, 0) << "none was cut in the middle of its work";
  const auto other = open_store(url_).value();  // none of whose connections was cut
  for (const auto& name : confirmed)
    EXPECT_EQ(other->list_kernel_choices(name).value().size(), 2u) << name;
  const auto cpus = other->list_kernel_cpus().value();
  for (const auto& name : cpus)
    EXPECT_EQ(other->list_kernel_choices(name).value().size(), 2u) << "half of a transaction";
}

TEST_F(PostgresStore, WakesWhoWaitsForTrials) {
  const auto one = open_store(url_).value();
  const auto other = open_store(url_).value();
  ASSERT_TRUE(one->studies().create_study(example_study("s")));
  ASSERT_TRUE(one->studies().hears_of_changes());
  const auto wait = [&](Store& store, News news) {
    store.studies().wait_for_news("s", news, 10min, {});
  };
  wait(*other, News::queued);  // the first call begins to listen, and comes back at once
  wait(*one, News::ended);
  {
    const std::jthread waiting([&] { wait(*other, News::queued); });
    ASSERT_EQ(one->studies().add_trials("s", queued_trials(0, 1)), true);
  }
  const auto trial = other->studies().claim_trial("s", "w", date(), date(9)).value().value();
  {
    const std::jthread waiting([&] { wait(*one, News::ended); });
    const Claim claim{.study = "s", .trial = 0, .worker = "w", .attempt = trial.attempts};
    ASSERT_EQ(other->studies().end_level(claim, plain_level(), ""), Hold::held);
  }
  {
    const std::jthread waiting([&] { wait(*other, News::queued); });
    ASSERT_EQ(one->studies().queue_level("s", 0, 1), true);
  }
  {
    const std::jthread waiting([&] { wait(*other, News::queued); });
    ASSERT_TRUE(one->studies().update_study("s", 0, std::nullopt, true));
  }
}

TEST_F(PostgresStore, DoesNotMissWhatWasSaidBeforeSomebodyWaits) {
  const auto store = open_store(url_).value();
  ASSERT_TRUE(store->studies().create_study(example_study("s")));
  store->studies().wait_for_news("s", News::queued, 10min, {});
  ASSERT_EQ(open_store(url_).value()->studies().add_trials("s", queued_trials(0, 1)), true);
  store->studies().wait_for_news("s", News::queued, 10min, {});
}

TEST_F(PostgresStore, StopsWaitingWhenItIsAskedTo) {
  const auto store = open_store(url_).value();
  std::stop_source stop;
  stop.request_stop();
  store->studies().wait_for_news("s", News::queued, 10min, stop.get_token());
  store->studies().wait_for_news("s", News::queued, 10min, stop.get_token());
}

}  // namespace
}  // namespace fleetfit::store
