#include "store/sql/sqlite_store.h"

#include <fmt/format.h>

#include <mutex>
#include <thread>

#include "fleetfit/core/sleep.h"
#include "store/sql/sql_store.h"
#include "store/sql/sqlite_connection.h"

namespace fleetfit::store {
namespace {

constexpr std::int32_t kApplicationId = 0x66666974;  // "ffit" in ASCII

// The version of the database, 0 for a new one. Fails if it is not ours to change.
Result<std::size_t> identify(SqliteConnection& connection, const SqliteSchema& schema) {
  FLEETFIT_ASSIGN(const auto application, connection.integer("PRAGMA application_id"));
  FLEETFIT_ASSIGN(const auto version, connection.integer("PRAGMA user_version"));
  FLEETFIT_ASSIGN(const auto objects, connection.integer("SELECT count(*) FROM sqlite_schema"));

  const bool is_new = application == 0 && version == 0 && objects == 0;
  if (application != schema.application_id && !is_new)
    return connection.failure(ErrorCode::invalid_input, "it is a database of another program");
  if (version < 0)
    return connection.failure(ErrorCode::invalid_input,
                              fmt::format("its schema version is {}", version));
  const auto found = static_cast<std::size_t>(version);
  return check_version(connection, found, schema.migrations).map([&] { return found; });
}

Status migrate(SqliteConnection& connection, const SqliteSchema& schema) {
  FLEETFIT_ASSIGN(const auto version, identify(connection, schema));
  FLEETFIT_TRY(run_migrations(connection, version, schema.migrations));
  return connection.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                                        schema.application_id, schema.migrations.size()));
}

// With a write-ahead log readers and a writer do not wait for each other. Where the file system
// cannot have one, SQLite stays with its rollback journal, which is slower and as safe. While
// another process writes to a file without a log, SQLite refuses the switch at once instead of
// waiting, so the waiting is done here.
Status use_write_ahead_log(SqliteConnection& connection) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + connection.patience();
  for (;;) {
    auto switched = connection.execute("PRAGMA journal_mode = WAL");
    if (switched || !connection.is_locked() || Clock::now() > deadline) return switched;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// One connection, which threads use in turns: a file has one writer at a time anyway.
class SqliteDatabase final : public SqlDatabase {
 public:
  explicit SqliteDatabase(std::unique_ptr<SqliteConnection> connection)
      : connection_(std::move(connection)) {}

  SqlDialect dialect() const override { return {.names_indexes = true}; }
  void wait_for(std::string_view /*topic*/, std::chrono::milliseconds timeout,
                const std::stop_token& stop) override {
    core::sleep_unless_stopped(timeout, stop);
  }

 protected:
  Result<SqlConnection*> take() override {
    mutex_.lock();
    return connection_.get();
  }
  void give_back(SqlConnection* /*connection*/) override { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  std::unique_ptr<SqliteConnection> connection_;
};

// How a commit reaches the disk.
enum class Synchronous {
  at_once,  ///< a measurement takes seconds, and boards lose power
  /// With the next checkpoint of the log, or when the system writes it. A killed process loses
  /// nothing; after a power cut, the last trials of a study and jobs of agents are run once more.
  soon,
};

SqliteSchema our_schema() {
  return {.application_id = kApplicationId, .migrations = sqlite_migrations()};
}

// A connection that cannot write.
Status check_up_to_date(SqliteConnection& connection, const SqliteSchema& schema) {
  FLEETFIT_ASSIGN(const auto version, identify(connection, schema));
  if (version == schema.migrations.size()) return {};
  return connection.failure(
      ErrorCode::unsupported,
      fmt::format("it was written by an older fleetfit (schema version {}, this one needs {}) and "
                  "cannot be brought up to date where it cannot be written",
                  version, schema.migrations.size()));
}

Result<std::unique_ptr<SqliteConnection>> connect_to_file(const std::filesystem::path& path,
                                                          const SqliteStoreOptions& options) {
  if (options.use == StoreUse::read_and_write || is_writable(path)) {
    FLEETFIT_ASSIGN(auto connection, SqliteConnection::open(path, options.patience));
    FLEETFIT_TRY(bring_up_to_date(*connection, our_schema()));
    return connection;
  }
  FLEETFIT_ASSIGN(auto connection, SqliteConnection::open_unwritable(path, options.patience));
  FLEETFIT_TRY(check_up_to_date(*connection, our_schema()));
  return connection;
}

Result<std::unique_ptr<SqlDatabase>> make_database(std::unique_ptr<SqliteConnection> connection,
                                                   Synchronous synchronous) {
  // Foreign keys come last, as migrations may rebuild tables. Sixteen megabytes of pages or more:
  // studies of many trials, and fleets of many jobs, have large indexes.
  FLEETFIT_TRY(
      connection->execute(fmt::format("PRAGMA foreign_keys = ON; PRAGMA cache_size = -{}; "
                                      "PRAGMA synchronous = {}",
                                      synchronous == Synchronous::at_once ? 16'000 : 48'000,
                                      synchronous == Synchronous::at_once ? "FULL" : "NORMAL")));
  return std::make_unique<SqliteDatabase>(std::move(connection));
}

}  // namespace

Status bring_up_to_date(SqliteConnection& connection, const SqliteSchema& schema) {
  using Transaction = SqliteConnection::Transaction;
  // Looked at before anything is written, as even the log is a change to the file.
  FLEETFIT_ASSIGN(const auto version, connection.transaction(Transaction::read, [&] {
    return identify(connection, schema);
  }));
  FLEETFIT_TRY(use_write_ahead_log(connection));
  if (version == schema.migrations.size()) return {};
  return connection.transaction(Transaction::write, [&] { return migrate(connection, schema); });
}

Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& path,
                                                 const SqliteStoreOptions& options) {
  const auto connect = [&](Synchronous synchronous) {
    return connect_to_file(path, options).and_then([&](auto connection) {
      return make_database(std::move(connection), synchronous);
    });
  };
  FLEETFIT_ASSIGN(auto records, connect(Synchronous::at_once));
  FLEETFIT_ASSIGN(auto studies, connect(Synchronous::soon));
  FLEETFIT_ASSIGN(auto traffic, connect(Synchronous::soon));
  return make_sql_store({.records = std::move(records),
                         .studies = std::move(studies),
                         .traffic = std::move(traffic)});
}

Result<std::unique_ptr<Store>> open_sqlite_in_memory() {
  FLEETFIT_ASSIGN(auto connection, SqliteConnection::open_in_memory());
  FLEETFIT_TRY(bring_up_to_date(*connection, our_schema()));
  FLEETFIT_ASSIGN(auto records, make_database(std::move(connection), Synchronous::soon));
  return make_sql_store({.records = std::move(records)});
}

}  // namespace fleetfit::store
