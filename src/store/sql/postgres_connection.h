#pragma once

#include <libpq-fe.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/sql/postgres_store.h"
#include "store/sql/sql_connection.h"

/// PostgreSQL with our errors: one line that names the data base. `io` if it cannot be reached, is
/// going down or keeps us waiting, `invalid_input` if the content is not what it should be.
namespace fleetfit::store {

/// A connection to a server. Statements are sent in libpq's pipeline mode: in a transaction, those
/// without rows travel with the next one that has some, so that a batch costs one round trip.
///
/// A transaction that writes is committed without waiting for the disk, which gives its locks free,
/// and waits then, together with those of other connections, until all that was committed before is
/// on the disk. So writers of one study do not wait for each other's disk.
class PostgresConnection final : public SqlConnection {
 public:
  /// Fails with `io` if there is no server, or it refuses.
  static Result<std::unique_ptr<PostgresConnection>> open(const PostgresAddress& address);

  const std::string& name() const override { return address_.name; }
  const PostgresAddress& address() const { return address_; }

  Status execute(const std::string& script) override;

  /// Whether it can be used for the next statement, as far as that can be known without one.
  bool is_usable() const;

  Status announce(std::string_view topic) override;
  /// From now on `has_heard` knows of the topic.
  Status listen(std::string_view topic);
  /// Waits for announcements, and gives the topics' channels. Fails if the connection is lost.
  Result<std::vector<std::string>> heard(std::chrono::milliseconds timeout);
  /// What a topic is called in the data base.
  std::string channel_of(std::string_view topic) const;

 protected:
  Status run(std::string_view sql, std::span<const SqlValue> values) override;
  Result<std::int64_t> run_counted(std::string_view sql, std::span<const SqlValue> values) override;
  Status query(std::string_view sql, std::span<const SqlValue> values,
               const RowReader& read) override;
  Status query_each(std::string_view sql, std::span<const SqlValues> lists,
                    const RowReader& read) override;
  Status begin(Transaction kind) override;
  Status commit() override;
  void rollback() override;

 private:
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  using Answer = std::unique_ptr<PGresult, Clear>;

  PostgresConnection(PostgresAddress address, PGconn* connection)
      : address_(std::move(address)), connection_(connection) {}

  Status send(std::string_view sql, std::span<const SqlValue> values);
  Status send_plain(const char* sql);
  Result<std::string> prepared(std::string_view sql, std::span<const SqlValue> values);
  /// Ends what was sent; the statements' answers, or the first failure.
  Result<std::vector<Answer>> collect_all();
  /// The last one.
  Result<Answer> collect();
  static Status read_rows(const PGresult* answer, const RowReader& read);
  tl::unexpected<Error> failure_of(const PGresult* answer) const;
  tl::unexpected<Error> lost() const;

  PostgresAddress address_;
  std::unique_ptr<PGconn, Close> connection_;
  std::map<std::string, std::string, std::less<>> statements_;  // their names by their texts
  std::vector<std::string> fresh_;  // texts that the server may not have accepted yet
  std::size_t prepared_ = 0;
  std::size_t unanswered_ = 0;
  bool in_transaction_ = false;
  bool has_written_ = false;
  Transaction kind_ = Transaction::read;
};

}  // namespace fleetfit::store
