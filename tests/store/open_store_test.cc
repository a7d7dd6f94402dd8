#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "fleetfit/core/file.h"
#include "fleetfit/core/random.h"
#include "fleetfit/store/store.h"
#include "fleetfit/store/store_file.h"
#include "tests/core/temporary_folder.h"
#include "tests/store/example_records.h"
#include "tests/store/raw_database.h"

namespace fleetfit::store {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Error error_of(std::string_view url) {
  const auto opened = open_store(url);
  EXPECT_FALSE(opened) << url;
  return opened ? Error{} : opened.error();
}

Error error_of_file(const fs::path& path) { return error_of("sqlite:" + path.string()); }

TEST(OpenStore, RefusesTextsThatAreNoStore) {
  for (const char* url : {"", "fleetfit.db", "memory", "memory:x", "mysql://host/db", "SQLITE:a.db",
                          "sqlite", "sqlite:"})
    EXPECT_EQ(error_of(url).code, ErrorCode::invalid_input) << url;
  EXPECT_EQ(error_of(std::string_view("sqlite:a\0b", 10)).code, ErrorCode::invalid_input);
  EXPECT_EQ(error_of("fleetfit.db").message,
            "'fleetfit.db' is no store; expected sqlite:PATH, postgres://… or memory:");
}

TEST(OpenStore, SaysThatThereIsNoServerAndKeepsThePasswordToItself) {
  for (const std::string_view url :
       {"postgres://me:secret@127.0.0.1:1/db", "postgresql://me@127.0.0.1:1/db?password=secret"}) {
    const auto error = error_of(url);
    EXPECT_EQ(error.code, ErrorCode::io);
    EXPECT_THAT(error.message, HasSubstr("postgres://127.0.0.1:1/db: cannot connect: "));
    EXPECT_THAT(error.message, HasSubstr("refused"));
    EXPECT_THAT(error.message, Not(HasSubstr("secret")));
    EXPECT_THAT(error.message, Not(HasSubstr("\n")));
  }
}

TEST(OpenStore, GivesEachMemoryStoreRecordsOfItsOwn) {
  const auto one = open_store("memory:").value();
  const auto other = open_store("memory:").value();
  ASSERT_TRUE(one->save_device({.name = "a"}));
  EXPECT_TRUE(other->list_devices().value().empty());
}

class SqliteFile : public testing::Test {
 protected:
  std::string url() const { return "sqlite:" + path_.string(); }

  core::TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "store.db";
};

TEST_F(SqliteFile, KeepsRecordsUntilItIsOpenedAgain) {
  auto measurement = full_measurement();
  measurement.id = open_store(url()).value()->add_measurement(measurement).value();
  EXPECT_THAT(open_store(url()).value()->list_measurements({}).value(), ElementsAre(measurement));
}

TEST_F(SqliteFile, IsSharedByAllWhoOpenIt) {
  const auto one = open_store(url()).value();
  const auto other = open_store(url()).value();
  ASSERT_TRUE(one->save_device({.name = "a"}));
  EXPECT_EQ(other->list_devices().value().size(), 1u);
  EXPECT_TRUE(other->remove_device("a").value());
  EXPECT_TRUE(one->list_devices().value().empty());
}

TEST_F(SqliteFile, LeavesNoOperatorsBehindARemovedMeasurement) {
  const auto store = open_store(url()).value();
  const auto id = store->add_measurement(full_measurement()).value();
  EXPECT_EQ(RawDatabase(path_).value("SELECT count(*) FROM operators"), "3");
  ASSERT_TRUE(store->remove_measurement(id).value());
  EXPECT_EQ(RawDatabase(path_).value("SELECT count(*) FROM operators"), "0");
}

fs::perms permissions(const fs::path& file) { return fs::status(file).permissions(); }

constexpr auto kOwnerOnly = fs::perms::owner_read | fs::perms::owner_write;
constexpr auto kForAll = kOwnerOnly | fs::perms::group_read | fs::perms::others_read;

TEST_F(SqliteFile, IsItsOwnersAlone) {
  const auto store = open_store(url()).value();
  ASSERT_TRUE(store->save_device({.name = "a"}));
  for (const auto* part : {"", "-wal", "-shm"})
    EXPECT_EQ(permissions(path_.string() + part), kOwnerOnly) << part;
}

TEST_F(SqliteFile, IsTakenFromOthersWhoCouldReadIt) {
  const auto store = open_store(url()).value();
  ASSERT_TRUE(store->save_device({.name = "a"}));
  EXPECT_EQ(keep_from_others(url()), std::nullopt);
  fs::permissions(path_, kForAll);
  fs::permissions(path_.string() + "-wal", kForAll);
  EXPECT_EQ(keep_from_others(url()),
            path_.string() +
                ": all users of this machine could read the store, which holds hashes "
                "of tokens; now its owner alone can");
  for (const auto* part : {"", "-wal", "-shm"})
    EXPECT_EQ(permissions(path_.string() + part), kOwnerOnly) << part;
  EXPECT_EQ(keep_from_others(url()), std::nullopt);
  EXPECT_EQ(store->list_devices()->size(), 1u);
}

TEST_F(SqliteFile, MayBeOfAGroup) {
  ASSERT_TRUE(open_store(url()));
  const auto shared = kOwnerOnly | fs::perms::group_read | fs::perms::group_write;
  fs::permissions(path_, shared);
  EXPECT_EQ(keep_from_others(url()), std::nullopt);
  EXPECT_EQ(permissions(path_), shared);
  EXPECT_EQ(keep_from_others("memory:"), std::nullopt);
  EXPECT_EQ(keep_from_others("sqlite:" + (folder_.path() / "none.db").string()), std::nullopt);
}

TEST_F(SqliteFile, MayBeEmptyAtFirst) {
  folder_.file("store.db", "");
  EXPECT_TRUE(open_store(url()).value()->save_device({.name = "a"}));
}

TEST_F(SqliteFile, IsRelativeToTheWorkingFolderWhateverItsName) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  EXPECT_TRUE(open_store("sqlite:a.db"));
  EXPECT_TRUE(open_store("sqlite::memory:"));
  EXPECT_TRUE(open_store("sqlite:file:b.db?mode=memory"));
  fs::current_path(before);
  for (const char* name : {"a.db", ":memory:", "file:b.db?mode=memory"})
    EXPECT_TRUE(fs::exists(folder_.path() / name)) << name;
}

TEST_F(SqliteFile, IsRefusedIfItIsNoDatabase) {
  for (const auto& content :
       {std::string("x"), std::string("name,ms\na,1\n"), std::string(100'000, '\0'),
        std::string(5000, 'z'), std::string("SQLite format 3\0", 16)}) {
    folder_.file("store.db", content);
    const auto error = error_of_file(path_);
    EXPECT_EQ(error.code, ErrorCode::invalid_input) << error.message;
    EXPECT_THAT(error.message, HasSubstr(path_.string() + ": it is "));
    EXPECT_TRUE(core::read_file(path_).value() == content) << "it was changed";
  }
}

TEST_F(SqliteFile, OfAnotherProgramIsRefusedAndNotChanged) {
  for (const char* sql : {"CREATE TABLE bookmarks (url TEXT)", "PRAGMA application_id = 1234",
                          "PRAGMA user_version = 1"}) {
    fs::remove(path_);
    RawDatabase(path_).execute(sql);
    const auto before = core::read_file(path_).value();
    const auto error = error_of_file(path_);
    EXPECT_EQ(error.code, ErrorCode::invalid_input) << sql;
    EXPECT_EQ(error.message, path_.string() + ": it is a database of another program");
    EXPECT_TRUE(core::read_file(path_).value() == before) << "it was changed";
  }
}

TEST_F(SqliteFile, WithoutItsTablesIsAnErrorThatNamesThem) {
  ASSERT_TRUE(open_store(url()));
  RawDatabase(path_).execute("DROP TABLE devices");
  const auto listed = open_store(url()).value()->list_devices();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(listed.error().message, HasSubstr("no such table: devices"));
}

TEST_F(SqliteFile, WithAnUnknownStatusIsAnErrorThatNamesTheMeasurement) {
  ASSERT_TRUE(open_store(url()).value()->add_measurement(full_measurement()));
  RawDatabase(path_).execute(
      "PRAGMA ignore_check_constraints = ON; UPDATE measurements SET status = 'perfect'");
  const auto listed = open_store(url()).value()->list_measurements({});
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::invalid_input);
  EXPECT_THAT(listed.error().message, HasSubstr("store.db: measurement 1: 'perfect' is no status"));
}

TEST_F(SqliteFile, IsRefusedIfItIsAFolderOrAPipe) {
  fs::create_directory(path_);
  EXPECT_EQ(error_of_file(path_).code, ErrorCode::invalid_input);
  EXPECT_EQ(error_of_file(path_).message, "cannot open " + path_.string() + ": it is a folder");
  const auto pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of_file(pipe).code, ErrorCode::invalid_input);
}

TEST_F(SqliteFile, InAFolderThatDoesNotExistIsAnIoError) {
  const auto error = error_of_file(folder_.path() / "nowhere" / "store.db");
  EXPECT_EQ(error.code, ErrorCode::io);
  EXPECT_THAT(error.message, HasSubstr("nowhere/store.db: No such file or directory"));
}

TEST_F(SqliteFile, WhereNobodyMayCreateFilesIsAnIoError) {
  EXPECT_EQ(error_of_file("/proc/fleetfit-store.db").code, ErrorCode::io);
}

// Permissions do not hold the superuser back, who therefore becomes another user for a while.
class AsOrdinaryUser {
 public:
  explicit AsOrdinaryUser(const fs::path& folder) {
    if (!root_) return;
    for (const auto& entry : fs::directory_iterator(folder))
      EXPECT_EQ(::chown(entry.path().c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(::chown(folder.c_str(), kNobody, kNobody), 0);
    EXPECT_EQ(::seteuid(kNobody), 0);
  }
  AsOrdinaryUser(const AsOrdinaryUser&) = delete;
  AsOrdinaryUser& operator=(const AsOrdinaryUser&) = delete;
  ~AsOrdinaryUser() {
    if (!root_) return;
    EXPECT_EQ(::seteuid(0), 0);
  }

 private:
  static constexpr uid_t kNobody = 65534;
  const bool root_ = ::geteuid() == 0;
};

TEST_F(SqliteFile, ThatMayNotBeWrittenIsAnIoError) {
  ASSERT_TRUE(open_store(url()));
  const AsOrdinaryUser user(folder_.path());
  fs::permissions(path_, fs::perms::owner_read);
  const auto error = error_of_file(path_);
  EXPECT_EQ(error.code, ErrorCode::io);
  EXPECT_EQ(error.message, path_.string() + ": there is no permission to write it");
}

TEST_F(SqliteFile, InAFolderThatMayNotBeWrittenIsAnIoError) {
  ASSERT_TRUE(open_store(url()));
  const AsOrdinaryUser user(folder_.path());
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const auto existing = error_of_file(path_);
  const auto missing = error_of_file(folder_.path() / "new.db");
  fs::permissions(folder_.path(), fs::perms::owner_all);
  EXPECT_EQ(existing.code, ErrorCode::io) << existing.message;
  EXPECT_EQ(missing.code, ErrorCode::io) << missing.message;
  EXPECT_THAT(existing.message, HasSubstr("store.db: "));
  EXPECT_THAT(missing.message, HasSubstr("new.db: Permission denied"));
}

// Everything that a store can be asked; gives the first error.
Status read_and_write(std::string_view url) {
  auto opened = open_store(url);
  if (!opened) return tl::unexpected(opened.error());
  Store& store = **opened;
  if (auto r = store.list_devices(); !r) return tl::unexpected(r.error());
  if (auto r = store.list_models(); !r) return tl::unexpected(r.error());
  if (auto r = store.list_measurements({}); !r) return tl::unexpected(r.error());
  if (auto r = store.list_kernel_choices("zen4"); !r) return tl::unexpected(r.error());
  if (auto r = store.add_measurement(full_measurement()); !r) return tl::unexpected(r.error());
  return store.save_device({.name = "a"});
}

TEST_F(SqliteFile, ThatIsDamagedIsNoMoreThanAnError) {
  {
    const auto store = open_store(url()).value();
    ASSERT_TRUE(store->add_measurements(std::vector(30, full_measurement())));
    ASSERT_TRUE(store->save_device({.name = "a"}));
  }
  const auto sound = core::read_file(path_).value();
  int errors = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    core::Random random(seed);
    auto damaged = sound;
    if (seed % 3 == 0) damaged.resize(random.below(damaged.size()));
    for (int i = 0; i < 40 && !damaged.empty(); ++i)
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    for (const char* log : {"store.db-wal", "store.db-shm"}) fs::remove(folder_.path() / log);
    folder_.file("store.db", damaged);

    const auto status = read_and_write(url());
    if (status) continue;
    ++errors;
    EXPECT_THAT(status.error().code,
                testing::AnyOf(ErrorCode::invalid_input, ErrorCode::io, ErrorCode::unsupported))
        << status.error().message;
    EXPECT_THAT(status.error().message, HasSubstr("store.db"));
    EXPECT_THAT(status.error().message, Not(HasSubstr("\n")));
  }
  EXPECT_GT(errors, 20);
}

}  // namespace
}  // namespace fleetfit::store
