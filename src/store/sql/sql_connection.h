#pragma once

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
#include <vector>

#include "fleetfit/core/result.h"
#include "store/sql/sql_values.h"

/// What the code of SQL stores needs of a data base; SQLite and PostgreSQL implement it. Statements
/// have `?` for their parameters.
namespace fleetfit::store {

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
  tl::unexpected<Error> failure(ErrorCode code, std::string_view problem) const {
    return core::within(name(), {code, std::string(problem)});
  }

  /// Executes statements that have neither parameters nor rows that matter.
  virtual Status execute(const std::string& script) = 0;

  /// Executes a statement without rows: of its own or, in a transaction, as part of that; its
  /// failure may then show with a later call, at the latest with the end of the transaction.
  template <class... Values>
  Status write(std::string_view sql, const Values&... values) {
    return run(sql, SqlValues(values...).all());
  }
  /// How many rows it has inserted, changed or deleted.
  template <class... Values>
  Result<std::int64_t> write_counted(std::string_view sql, const Values&... values) {
    return run_counted(sql, SqlValues(values...).all());
  }

  /// The rows of a query.
  template <class Row, class... Values>
  Result<std::vector<Row>> all(std::string_view sql, const Values&... values) {
    std::vector<Row> rows;
    FLEETFIT_TRY(query(sql, SqlValues(values...).all(), into(rows)));
    return rows;
  }
  /// Of the same query with one list of values after another: quicker than one by one.
  template <class Row>
  Result<std::vector<Row>> all_of_each(std::string_view sql, std::span<const SqlValues> lists) {
    std::vector<Row> rows;
    FLEETFIT_TRY(query_each(sql, lists, into(rows)));
    return rows;
  }
  /// The first of them.
  template <class Row, class... Values>
  Result<std::optional<Row>> first(std::string_view sql, const Values&... values) {
    return all<Row>(sql, values...).map([](std::vector<Row> rows) {
      return rows.empty() ? std::nullopt : std::optional(std::move(rows.front()));
    });
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
  virtual Status query_each(std::string_view sql, std::span<const SqlValues> lists,
                            const RowReader& read) {
    for (const auto& values : lists) FLEETFIT_TRY(query(sql, values.all(), read));
    return {};
  }
  virtual Status begin(Transaction kind) = 0;
  virtual Status commit() = 0;
  /// Undoes what was not committed.
  virtual void rollback() = 0;

 private:
  template <class Row>
  RowReader into(std::vector<Row>& rows) const {
    return [this, &rows](SqlRow& row) {
      return core::within(name(), read_row(row, rows.emplace_back()));
    };
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
                        const std::stop_token& stop) = 0;

  /// What `body` returns of a connection that it has for itself meanwhile.
  template <class Body>
  std::invoke_result_t<Body, SqlConnection&> use(const Body& body) {
    FLEETFIT_ASSIGN(const auto connection, take());
    const std::unique_ptr<SqlConnection, GiveBack> loan(connection, GiveBack{this});
    return body(*loan);
  }
  /// The same within a transaction.
  template <class Body>
  std::invoke_result_t<Body, SqlConnection&> transaction(SqlConnection::Transaction kind,
                                                         const Body& body) {
    return use([&](SqlConnection& connection) {
      return connection.transaction(kind, [&] { return body(connection); });
    });
  }

  /// Single calls, as connections have them.
  template <class... Values>
  Status write(std::string_view sql, const Values&... values) {
    return use([&](SqlConnection& one) { return one.write(sql, values...); });
  }
  template <class... Values>
  Result<std::int64_t> write_counted(std::string_view sql, const Values&... values) {
    return use([&](SqlConnection& one) { return one.write_counted(sql, values...); });
  }
  template <class Row, class... Values>
  Result<std::vector<Row>> all(std::string_view sql, const Values&... values) {
    return use([&](SqlConnection& one) { return one.template all<Row>(sql, values...); });
  }
  template <class Row, class... Values>
  Result<std::optional<Row>> first(std::string_view sql, const Values&... values) {
    return use([&](SqlConnection& one) { return one.template first<Row>(sql, values...); });
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
