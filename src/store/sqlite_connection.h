#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"

/// SQLite with our errors: one line that names the file. `io` if the system refuses or another
/// process keeps the file locked, `invalid_input` if the content is not what it should be.
namespace fleetfit::store {

class SqliteConnection;

/// The values of a row, read from left to right.
class SqliteRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  std::string text();
  std::int64_t integer() { return sqlite3_column_int64(statement_, column_++); }
  double number() { return sqlite3_column_double(statement_, column_++); }
  std::optional<std::string> optional_text();
  std::optional<std::int64_t> optional_integer();
  std::optional<double> optional_number();

 private:
  bool skip_null();

  sqlite3_stmt* statement_;
  int column_ = 0;
};

/// A prepared statement while it is in use. The connection must outlive it, and so must the texts
/// that were bound, until it is destroyed or `run` returns.
class SqliteQuery {
 public:
  SqliteQuery(const SqliteConnection& connection, sqlite3_stmt* statement)
      : connection_(&connection), statement_(statement) {}

  /// Values for all parameters in their order: whole numbers, doubles, texts, or optionals of
  /// these.
  template <class... Values>
  SqliteQuery& bind(const Values&... values) {
    int index = 0;
    (keep(bind_one(++index, values)), ...);
    return *this;
  }

  /// Goes to the next row; false if there is none left.
  Result<bool> next();
  SqliteRow row() const { return SqliteRow(statement_.get()); }

  /// Executes a statement that has no rows; it can be bound again afterwards.
  Status run();

 private:
  int bind_one(int index, std::int64_t value);
  int bind_one(int index, double value);
  int bind_one(int index, std::string_view value);
  template <class Value>
  int bind_one(int index, const std::optional<Value>& value) {
    if (value) return bind_one(index, *value);
    return sqlite3_bind_null(statement_.get(), index);
  }
  void keep(int code) {
    if (bound_ == SQLITE_OK) bound_ = code;
  }

  struct Reset {
    void operator()(sqlite3_stmt* statement) const;
  };

  const SqliteConnection* connection_;
  std::unique_ptr<sqlite3_stmt, Reset> statement_;
  int bound_ = SQLITE_OK;
};

/// An open database file. Belongs to one thread at a time.
class SqliteConnection {
 public:
  /// Creates the file if there is none. `patience` is how long to wait for other processes.
  static Result<std::unique_ptr<SqliteConnection>> open(const std::filesystem::path& path,
                                                        std::chrono::milliseconds patience);

  /// A file of somebody else, which is never written. Fails with `not_found` if there is none.
  static Result<std::unique_ptr<SqliteConnection>> open_for_reading(
      const std::filesystem::path& path, std::chrono::milliseconds patience);

  /// The file as the user named it.
  const std::string& name() const { return name_; }
  std::chrono::milliseconds patience() const { return patience_; }

  /// Executes statements that give no rows that matter.
  Status execute(const std::string& sql);

  /// Prepares a statement, once for each text. A text is in use by one query at a time.
  Result<SqliteQuery> query(std::string_view sql);

  /// Executes one statement that has no rows. Of its own or, in a transaction, part of that.
  template <class... Values>
  Status write(std::string_view sql, const Values&... values) {
    if (auto there = check_still_there(); !there) return there;
    auto asked = query(sql);
    if (!asked) return tl::unexpected(std::move(asked.error()));
    return asked->bind(values...).run();
  }

  /// The rows of a query as records, made by `read`.
  template <class Record, class... Values>
  Result<std::vector<Record>> all(Result<Record> (*read)(SqliteRow), std::string_view sql,
                                  const Values&... values);

  /// The first of them.
  template <class Record, class... Values>
  Result<std::optional<Record>> first(Result<Record> (*read)(SqliteRow), std::string_view sql,
                                      const Values&... values);

  /// The first column of the first row, a whole number.
  Result<std::int64_t> integer(std::string_view sql);

  /// Rows that the last statement inserted, changed or deleted.
  std::int64_t changes() const { return sqlite3_changes64(database_.get()); }
  std::int64_t last_id() const { return sqlite3_last_insert_rowid(database_.get()); }

  enum class Transaction {
    read,   ///< sees one state of the database
    write,  ///< waits until no other process writes
  };

  /// What `body` returns. Its changes are all kept if that is a value, none if it is an error.
  /// Fails with `io` if the file has been removed or replaced: what is written would be lost.
  template <class Body>
  std::invoke_result_t<Body> transaction(Transaction kind, Body&& body);

  /// Whether the last call to SQLite failed because another process holds a lock.
  bool is_locked() const { return (sqlite3_errcode(database_.get()) & 0xff) == SQLITE_BUSY; }

  /// The error of the last call to SQLite.
  tl::unexpected<Error> failure() const;
  tl::unexpected<Error> failure(ErrorCode code, std::string_view problem) const;

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  // Undoes what was not committed, also if the body throws.
  struct Rollback {
    void operator()(sqlite3* database) const;
  };

  // `flags` are those of sqlite3_open_v2.
  static Result<std::unique_ptr<SqliteConnection>> open_with(const std::filesystem::path& path,
                                                             std::chrono::milliseconds patience,
                                                             int flags);

  // Outside of transactions, as that would be asked too often.
  Status check_still_there();

  SqliteConnection(std::string name, std::chrono::milliseconds patience, sqlite3* database)
      : name_(std::move(name)), patience_(patience), database_(database) {}

  std::string name_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<sqlite3, Close> database_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>, std::less<>> statements_;
};

template <class Record, class... Values>
Result<std::vector<Record>> SqliteConnection::all(Result<Record> (*read)(SqliteRow),
                                                  std::string_view sql, const Values&... values) {
  auto asked = query(sql);
  if (!asked) return tl::unexpected(std::move(asked.error()));
  asked->bind(values...);
  std::vector<Record> records;
  for (;;) {
    const auto has_row = asked->next();
    if (!has_row) return tl::unexpected(has_row.error());
    if (!*has_row) return records;
    auto record = read(asked->row());
    if (!record) return core::within(name_, std::move(record.error()));
    records.push_back(std::move(*record));
  }
}

template <class Record, class... Values>
Result<std::optional<Record>> SqliteConnection::first(Result<Record> (*read)(SqliteRow),
                                                      std::string_view sql,
                                                      const Values&... values) {
  return all(read, sql, values...).map([](std::vector<Record> records) {
    return records.empty() ? std::nullopt : std::optional(std::move(records.front()));
  });
}

template <class Body>
std::invoke_result_t<Body> SqliteConnection::transaction(Transaction kind, Body&& body) {
  if (auto there = check_still_there(); !there) return tl::unexpected(std::move(there.error()));
  auto begun = execute(kind == Transaction::write ? "BEGIN IMMEDIATE" : "BEGIN");
  if (!begun) return tl::unexpected(std::move(begun.error()));
  const std::unique_ptr<sqlite3, Rollback> rollback(database_.get());
  auto result = std::forward<Body>(body)();
  if (!result) return result;
  auto committed = execute("COMMIT");
  if (!committed) return tl::unexpected(std::move(committed.error()));
  return result;
}

}  // namespace fleetfit::store
