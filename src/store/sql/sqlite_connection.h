#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fleetfit/core/result.h"
#include "store/sql/sql_connection.h"

/// SQLite with our errors: one line that names the file. `io` if the system refuses or another
/// process keeps the file locked, `invalid_input` if the content is not what it should be.
namespace fleetfit::store {

/// Whether the system lets us write the file and the folder that it is in, or would be in.
bool is_writable(const std::filesystem::path& file);

/// An open database file. Belongs to one thread at a time.
class SqliteConnection final : public SqlConnection {
 public:
  /// Creates the file if there is none. `patience` is how long to wait for other processes.
  static Result<std::unique_ptr<SqliteConnection>> open(const std::filesystem::path& path,
                                                        std::chrono::milliseconds patience);

  /// A file of somebody else, which is never written. Fails with `not_found` if there is none.
  static Result<std::unique_ptr<SqliteConnection>> open_for_reading(
      const std::filesystem::path& path, std::chrono::milliseconds patience);

  /// A file where it cannot be written, as it is there.
  static Result<std::unique_ptr<SqliteConnection>> open_unwritable(
      const std::filesystem::path& path, std::chrono::milliseconds patience);

  /// A new data base without a file.
  static Result<std::unique_ptr<SqliteConnection>> open_in_memory();

  /// The file as the user named it.
  const std::string& name() const override { return name_; }
  std::chrono::milliseconds patience() const { return patience_; }

  Status execute(const std::string& script) override;

  /// The first column of the first row, a whole number.
  Result<std::int64_t> integer(std::string_view sql);

  /// Nobody waits for anything in a file.
  Status announce(std::string_view /*topic*/) override { return {}; }

  /// Whether the last call to SQLite failed because another process holds a lock.
  bool is_locked() const { return (sqlite3_errcode(database_.get()) & 0xff) == SQLITE_BUSY; }

  using SqlConnection::failure;
  /// The error of the last call to SQLite.
  tl::unexpected<Error> failure() const;

 protected:
  // Statements are prepared once for each text. Writing fails with `io` if the file has been
  // removed or replaced: what is written would be lost.
  Status run(std::string_view sql, std::span<const SqlValue> values) override;
  Result<std::int64_t> run_counted(std::string_view sql, std::span<const SqlValue> values) override;
  Status query(std::string_view sql, std::span<const SqlValue> values,
               const RowReader& read) override;
  Status begin(Transaction kind) override;
  Status commit() override { return execute("COMMIT"); }
  void rollback() override;

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  // Ready to be executed again.
  struct Reset {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Reset>;

  // `flags` are those of sqlite3_open_v2, `parameters` those of a URI.
  static Result<std::unique_ptr<SqliteConnection>> open_with(const std::filesystem::path& path,
                                                             std::chrono::milliseconds patience,
                                                             int flags,
                                                             std::string_view parameters = {});
  // What holds for all that is open.
  void prepare_connection();

  // Outside of transactions, as that would be asked too often.
  Status check_still_there();

  // With its parameters, while it is in use.
  Result<Statement> prepare(std::string_view sql, std::span<const SqlValue> values);

  SqliteConnection(std::string name, std::chrono::milliseconds patience, sqlite3* database)
      : name_(std::move(name)), patience_(patience), database_(database) {}

  std::string name_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<sqlite3, Close> database_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>, std::less<>> statements_;
};

}  // namespace fleetfit::store
