#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "fleetfit/core/result.h"
#include "store/sql/sql_values.h"

/// What the code of SQL stores needs of a data base; SQLite and PostgreSQL implement it. Statements
/// have `?` for their parameters.
namespace fleetfit::store {

/// A parameter. Its type is known even if it is null; texts are borrowed.
struct SqlValue {
  std::variant<std::int64_t, double, bool, std::string_view> value;
  bool is_null = false;
};

inline SqlValue sql_value(std::int64_t value) { return {.value = value}; }
inline SqlValue sql_value(double value) { return {.value = value}; }
inline SqlValue sql_value(bool value) { return {.value = value}; }
inline SqlValue sql_value(std::string_view value) { return {.value = value}; }
inline SqlValue sql_value(const char* value) { return {.value = std::string_view(value)}; }
inline SqlValue sql_value(const std::string& value) { return {.value = std::string_view(value)}; }
template <class Value>
SqlValue sql_value(const std::optional<Value>& value) {
  if (value) return sql_value(*value);
  static const Value kNothing{};
  auto null = sql_value(kNothing);
  null.is_null = true;
  return null;
}

/// The values of a row, read from left to right. What is null is read as 0, false or empty. Records
/// are read by sql_records.h.
class SqlRow {
 public:
  virtual ~SqlRow() = default;

  virtual std::string text() = 0;
  virtual std::int64_t integer() = 0;
  virtual double number() = 0;
  virtual bool boolean() = 0;

  /// Whether the value that comes next is null.
  virtual bool is_null() const = 0;
  /// Goes on to the one behind it.
  virtual void skip() = 0;

  std::optional<std::string> optional_text() { return unless_null(&SqlRow::text); }
  std::optional<std::int64_t> optional_integer() { return unless_null(&SqlRow::integer); }
  std::optional<double> optional_number() { return unless_null(&SqlRow::number); }

 private:
  template <class Value>
  std::optional<Value> unless_null(Value (SqlRow::*read)()) {
    if (!is_null()) return (this->*read)();
    skip();
    return std::nullopt;
  }
};

/// Readers of rows with one value.
inline Result<std::int64_t> read_id(SqlRow& row) { return row.integer(); }
inline Result<std::string> read_name(SqlRow& row) { return row.text(); }

/// Where data bases differ.
struct SqlDialect {
  /// Behind a query: nobody else changes the rows until the transaction ends.
  std::string_view lock = {};
  std::string_view lock_progress = {};   ///< the same, of the table `study_progress` alone
  std::string_view lock_free_rows = {};  ///< the same, leaving out rows that others have locked
  /// Whether the planner must be made to use a partial index.
  bool names_indexes = false;
};

/// A connection to a data base. Belongs to one thread at a time.
class SqlConnection {
 public:
  SqlConnection() = default;
  SqlConnection(const SqlConnection&) = delete;
  SqlConnection& operator=(const SqlConnection&) = delete;
  virtual ~SqlConnection() = default;

  /// The data base in messages.
  virtual const std::string& name() const = 0;

  /// Executes a statement without rows: of its own or, in a transaction, as part of that; its
  /// failure may then show with a later call, at the latest with the end of the transaction.
  template <class... Values>
  Status write(std::string_view sql, const Values&... values) {
    const std::array<SqlValue, sizeof...(Values)> all{sql_value(values)...};
    return run(sql, all);
  }
  Status write(std::string_view sql, std::span<const SqlValue> values) { return run(sql, values); }
  /// How many rows it has inserted, changed or deleted.
  template <class... Values>
  Result<std::int64_t> write_counted(std::string_view sql, const Values&... values) {
    const std::array<SqlValue, sizeof...(Values)> all{sql_value(values)...};
    return run_counted(sql, all);
  }

  /// The rows of a query as records, made by `read`.
  template <class Record>
  Result<std::vector<Record>> all(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                  std::span<const SqlValue> values);
  template <class Record, class... Values>
  Result<std::vector<Record>> all(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                  const Values&... values) {
    const std::array<SqlValue, sizeof...(Values)> list{sql_value(values)...};
    return all(read, sql, std::span<const SqlValue>(list));
  }
  /// Of the same query with one list of values after another: quicker than one by one.
  template <class Record>
  Result<std::vector<Record>> all_of_each(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                          std::span<const std::vector<SqlValue>> lists) {
    std::vector<Record> records;
    FLEETFIT_TRY(query_each(sql, lists, [&](SqlRow& row) { return keep(read, row, records); }));
    return records;
  }
  /// The first of them.
  template <class Record>
  Result<std::optional<Record>> first(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                      std::span<const SqlValue> values) {
    return all(read, sql, values).map([](std::vector<Record> records) {
      return records.empty() ? std::nullopt : std::optional(std::move(records.front()));
    });
  }
  template <class Record, class... Values>
  Result<std::optional<Record>> first(Result<Record> (*read)(SqlRow&), std::string_view sql,
                                      const Values&... values) {
    const std::array<SqlValue, sizeof...(Values)> list{sql_value(values)...};
    return first(read, sql, std::span<const SqlValue>(list));
  }

  enum class Transaction {
    read,    ///< sees one state of the data base
    write,   ///< kept when it has ended
    casual,  ///< writes what may be forgotten if the machine stops
  };

  /// What `body` returns. Its changes are all kept if that is a value, none if it is an error.
  template <class Body>
  std::invoke_result_t<Body> transaction(Transaction kind, Body&& body);

  /// Tells all who wait for `topic` when the transaction has ended.
  virtual Status announce(std::string_view topic) = 0;

 protected:
  using RowReader = std::function<Status(SqlRow&)>;

  virtual Status run(std::string_view sql, std::span<const SqlValue> values) = 0;
  virtual Result<std::int64_t> run_counted(std::string_view sql,
                                           std::span<const SqlValue> values) = 0;
  virtual Status query(std::string_view sql, std::span<const SqlValue> values,
                       const RowReader& read) = 0;
  virtual Status query_each(std::string_view sql, std::span<const std::vector<SqlValue>> lists,
                            const RowReader& read);
  virtual Status begin(Transaction kind) = 0;
  virtual Status commit() = 0;
  /// Undoes what was not committed.
  virtual void rollback() = 0;

 private:
  template <class Record>
  Status keep(Result<Record> (*read)(SqlRow&), SqlRow& row, std::vector<Record>& records) const {
    FLEETFIT_ASSIGN(auto record, core::within(name(), read(row)));
    records.push_back(std::move(record));
    return {};
  }

  struct Undo {
    void operator()(SqlConnection* connection) const { connection->rollback(); }
  };
};

/// Lends connections to threads.
class SqlDatabase {
 public:
  SqlDatabase() = default;
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;
  virtual ~SqlDatabase() = default;

  virtual SqlDialect dialect() const = 0;

  /// Whether `wait_for` hears what connections announce, those of other processes too.
  virtual bool announces() const { return false; }
  /// Waits until `topic` may have been announced since the last call, or the time is over.
  virtual void wait_for(std::string_view topic, std::chrono::milliseconds timeout,
                        const std::stop_token& stop);

  /// What `body` returns of a connection that it has for itself meanwhile.
  template <class Body>
  std::invoke_result_t<Body, SqlConnection&> use(const Body& body) {
    FLEETFIT_ASSIGN(const auto connection, take());
    const std::unique_ptr<SqlConnection, GiveBack> loan(connection, GiveBack{this});
    return body(*loan);
  }

 protected:
  virtual Result<SqlConnection*> take() = 0;
  virtual void give_back(SqlConnection* connection) = 0;

 private:
  struct GiveBack {
    SqlDatabase* database;
    void operator()(SqlConnection* connection) const { database->give_back(connection); }
  };
};

template <class Record>
Result<std::vector<Record>> SqlConnection::all(Result<Record> (*read)(SqlRow&),
                                               std::string_view sql,
                                               std::span<const SqlValue> values) {
  std::vector<Record> records;
  FLEETFIT_TRY(query(sql, values, [&](SqlRow& row) { return keep(read, row, records); }));
  return records;
}

template <class Body>
std::invoke_result_t<Body> SqlConnection::transaction(Transaction kind, Body&& body) {
  FLEETFIT_TRY(begin(kind));
  std::unique_ptr<SqlConnection, Undo> undo(this);
  auto result = std::forward<Body>(body)();
  if (!result) return result;
  FLEETFIT_TRY(commit());
  static_cast<void>(undo.release());
  return result;
}

}  // namespace fleetfit::store
