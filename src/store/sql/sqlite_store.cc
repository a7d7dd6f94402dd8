#include "store/sql/sqlite_store.h"

#include <fmt/format.h>

#include <mutex>

#include "store/sql/sql_store.h"
#include "store/sql/sqlite_connection.h"
#include "store/sql/sqlite_schema.h"

namespace fleetfit::store {
namespace {

/// One connection, which threads use in turns: a file has one writer at a time anyway.
class SqliteDatabase final : public SqlDatabase {
 public:
  explicit SqliteDatabase(std::unique_ptr<SqliteConnection> connection)
      : connection_(std::move(connection)) {}

  SqlDialect dialect() const override { return {.names_indexes = true}; }

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

Result<std::unique_ptr<SqlDatabase>> connect(const std::filesystem::path& path,
                                             const SqliteStoreOptions& options,
                                             Synchronous synchronous) {
  FLEETFIT_ASSIGN(auto connection, SqliteConnection::open(path, options.patience));
  FLEETFIT_TRY(bring_up_to_date(*connection, current_schema()));
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

Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& path,
                                                 const SqliteStoreOptions& options) {
  FLEETFIT_ASSIGN(auto records, connect(path, options, Synchronous::at_once));
  FLEETFIT_ASSIGN(auto studies, connect(path, options, Synchronous::soon));
  FLEETFIT_ASSIGN(auto traffic, connect(path, options, Synchronous::soon));
  return make_sql_store({.records = std::move(records),
                         .studies = std::move(studies),
                         .traffic = std::move(traffic)});
}

}  // namespace fleetfit::store
