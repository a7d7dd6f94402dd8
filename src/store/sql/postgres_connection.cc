#include "store/sql/postgres_connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>

#include "fleetfit/core/program.h"
#include "fleetfit/core/sha256.h"
#include "fleetfit/store/gone.h"

namespace fleetfit::store {
namespace {

using std::chrono::milliseconds;

// More are not kept waiting for their answers.
constexpr std::size_t kInFlight = 512;

// Of the types of our columns, as PostgreSQL's catalogue numbers them.
constexpr Oid kBool = 16;
constexpr Oid kInt8 = 20;
constexpr Oid kText = 25;
constexpr Oid kFloat8 = 701;
constexpr int kBinary = 1;

Oid type_of(const SqlValue& value) {
  constexpr std::array<Oid, 4> kTypes{kInt8, kFloat8, kBool, kText};
  return kTypes.at(value.value.index());
}

using Bytes = std::array<char, 8>;

// The other way round as well.
std::uint64_t big_endian(std::uint64_t value) {
  return std::endian::native == std::endian::big ? value : __builtin_bswap64(value);
}

Bytes to_bytes(std::uint64_t value) { return std::bit_cast<Bytes>(big_endian(value)); }

/// Parameters as libpq takes them. Texts are borrowed.
class Parameters {
 public:
  explicit Parameters(std::span<const SqlValue> values) : bytes_(values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) add(values[i], bytes_[i]);
    formats_.assign(values.size(), kBinary);
  }

  int count() const { return static_cast<int>(pointers_.size()); }
  const char* const* pointers() const { return pointers_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void add(const SqlValue& value, Bytes& bytes) {
    if (value.is_null) return add(nullptr, 0);
    if (const auto* text = std::get_if<std::string_view>(&value.value))
      return add(text->data() == nullptr ? "" : text->data(), text->size());
    if (const auto* truth = std::get_if<bool>(&value.value)) {
      bytes[0] = *truth ? 1 : 0;
      return add(bytes.data(), 1);
    }
    const auto* number = std::get_if<double>(&value.value);
    bytes = to_bytes(number != nullptr
                         ? std::bit_cast<std::uint64_t>(*number)
                         : static_cast<std::uint64_t>(std::get<std::int64_t>(value.value)));
    add(bytes.data(), bytes.size());
  }
  void add(const char* pointer, std::size_t length) {
    pointers_.push_back(pointer);
    lengths_.push_back(static_cast<int>(length));
  }

  std::vector<Bytes> bytes_;
  std::vector<const char*> pointers_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

class PostgresRow final : public SqlRow {
 public:
  PostgresRow(const PGresult* answer, int row) : answer_(answer), row_(row) {}

  std::string text() override {
    const auto bytes = next();
    return std::string(bytes);
  }
  std::int64_t integer() override { return static_cast<std::int64_t>(number_of(next())); }
  double number() override { return std::bit_cast<double>(number_of(next())); }
  bool boolean() override {
    const auto bytes = next();
    return !bytes.empty() && bytes.front() != 0;
  }

  bool is_null() const override { return PQgetisnull(answer_, row_, column_) != 0; }
  void skip() override { ++column_; }

 private:
  std::string_view next() {
    const std::string_view bytes(PQgetvalue(answer_, row_, column_),
                                 static_cast<std::size_t>(PQgetlength(answer_, row_, column_)));
    ++column_;
    return bytes;
  }
  // What is null has no bytes. Tables that somebody has changed may have shorter numbers.
  static std::uint64_t number_of(std::string_view bytes) {
    Bytes all{};
    if (bytes.size() != all.size()) return 0;
    std::ranges::copy(bytes, all.begin());
    return big_endian(std::bit_cast<std::uint64_t>(all));
  }

  const PGresult* answer_;
  int row_;
  int column_ = 0;
};

// `?` becomes `$1` and so on. None of our statements has one within quotes.
std::string with_numbered_parameters(std::string_view sql) {
  std::string text;
  int number = 0;
  for (const char c : sql) {
    if (c == '?') {
      text += fmt::format("${}", ++number);
    } else {
      text += c;
    }
  }
  return text;
}

// PostgreSQL ends its messages with a line end.
std::string on_one_line(std::string text) {
  text = core::one_line(std::move(text));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// libpq has no code for why a connection was refused. A server that says it in another language is
// waited for.
bool says_no_database(const PGconn* connection) {
  const auto words = fmt::format("database \"{}\" does not exist", PQdb(connection));
  return std::string_view(PQerrorMessage(connection)).find(words) != std::string_view::npos;
}

void say_nothing(void* /*nobody*/, const char* /*message*/) {}

std::string_view state_of(const PGresult* answer) {
  const char* state = PQresultErrorField(answer, PG_DIAG_SQLSTATE);
  return state == nullptr ? "" : state;
}

bool is_writing(std::string_view sql) { return !sql.starts_with("SELECT"); }

}  // namespace

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::open(
    const PostgresAddress& address) {
  // What the URL says comes later and wins.
  const std::array<const char*, 6> keys{"fallback_application_name", "connect_timeout",
                                        "tcp_user_timeout",          "dbname",
                                        "client_encoding",           nullptr};
  const std::array<const char*, 6> values{"fleetfit",          "10",   "30000",
                                          address.url.c_str(), "UTF8", nullptr};
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<PostgresConnection> opened(
      new PostgresConnection(address, PQconnectdbParams(keys.data(), values.data(), 1)));
  PGconn* connection = opened->connection_.get();
  if (PQstatus(connection) != CONNECTION_OK && says_no_database(connection))
    return opened->failure(ErrorCode::io, kDatabaseGone);
  if (PQstatus(connection) != CONNECTION_OK)
    return opened->failure(
        ErrorCode::io, on_one_line(fmt::format("cannot connect: {}", PQerrorMessage(connection))));
  PQsetNoticeProcessor(connection, say_nothing, nullptr);
  // A process that is stopped in the middle of a transaction must not stop all others for ever.
  FLEETFIT_TRY(
      opened->execute(fmt::format("SET search_path TO {}; SET lock_timeout TO '30s'; "
                                  "SET idle_in_transaction_session_timeout TO '60s'",
                                  address.schema)));
  return opened;
}

bool PostgresConnection::is_usable() const {
  if (PQstatus(connection_.get()) != CONNECTION_OK) return false;
  if (PQtransactionStatus(connection_.get()) != PQTRANS_IDLE) return false;
  // A server says something to somebody idle when it goes down.
  pollfd polled{PQsocket(connection_.get()), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 0;
}

Status PostgresConnection::execute(const std::string& script) {
  if (unanswered_ > 0) FLEETFIT_TRY(collect());
  PGconn* connection = connection_.get();
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF && PQexitPipelineMode(connection) == 0)
    return lost();
  has_written_ = true;
  const Answer answer(PQexec(connection, script.c_str()));
  const auto status = PQresultStatus(answer.get());
  const bool goes_on = PQenterPipelineMode(connection) != 0;
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) return failure_of(answer.get());
  if (!goes_on) return lost();
  return {};
}

Result<std::string> PostgresConnection::prepared(std::string_view sql,
                                                 std::span<const SqlValue> values) {
  if (const auto found = statements_.find(sql); found != statements_.end()) return found->second;
  std::vector<Oid> types;
  for (const auto& value : values) types.push_back(type_of(value));
  auto name = fmt::format("s{}", ++prepared_);
  if (PQsendPrepare(connection_.get(), name.c_str(), with_numbered_parameters(sql).c_str(),
                    static_cast<int>(types.size()), types.data()) == 0)
    return lost();
  ++unanswered_;
  fresh_.emplace_back(sql);
  return statements_.emplace(std::string(sql), std::move(name)).first->second;
}

Status PostgresConnection::send(std::string_view sql, std::span<const SqlValue> values) {
  FLEETFIT_ASSIGN(const auto name, prepared(sql, values));
  const Parameters parameters(values);
  if (PQsendQueryPrepared(connection_.get(), name.c_str(), parameters.count(),
                          parameters.pointers(), parameters.lengths(), parameters.formats(),
                          kBinary) == 0)
    return lost();
  ++unanswered_;
  has_written_ = has_written_ || is_writing(sql);
  return {};
}

Status PostgresConnection::send_plain(const char* sql) {
  if (PQsendQueryParams(connection_.get(), sql, 0, nullptr, nullptr, nullptr, nullptr, kBinary) ==
      0)
    return lost();
  ++unanswered_;
  return {};
}

Result<PostgresConnection::Answer> PostgresConnection::collect() {
  return collect_all().map(
      [](std::vector<Answer> all) { return all.empty() ? Answer() : std::move(all.back()); });
}

Result<std::vector<PostgresConnection::Answer>> PostgresConnection::collect_all() {
  PGconn* connection = connection_.get();
  if (PQpipelineSync(connection) == 0) return lost();
  unanswered_ = 0;
  std::vector<Answer> all;
  std::optional<Error> error;
  for (bool was_end = false;;) {
    Answer answer(PQgetResult(connection));
    // Each statement's answers end with nothing; twice nothing: the connection is gone.
    if (!answer && was_end) return lost();
    was_end = !answer;
    if (!answer) continue;
    const auto status = PQresultStatus(answer.get());
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
      all.push_back(std::move(answer));
    } else if (status != PGRES_PIPELINE_ABORTED && !error) {
      error = failure_of(answer.get()).value();
    }
    if (PQstatus(connection) == CONNECTION_BAD) return lost();
  }
  if (error)
    for (const auto& sql : fresh_) statements_.erase(sql);
  fresh_.clear();
  if (error) return tl::unexpected(*std::move(error));
  return all;
}

Status PostgresConnection::run(std::string_view sql, std::span<const SqlValue> values) {
  FLEETFIT_TRY(send(sql, values));
  if (in_transaction_ && unanswered_ < kInFlight) return {};
  return collect().map([](const Answer& /*empty*/) {});
}

Result<std::int64_t> PostgresConnection::run_counted(std::string_view sql,
                                                     std::span<const SqlValue> values) {
  FLEETFIT_TRY(send(sql, values));
  FLEETFIT_ASSIGN(const auto answer, collect());
  return std::atoll(PQcmdTuples(answer.get()));
}

Status PostgresConnection::query(std::string_view sql, std::span<const SqlValue> values,
                                 const RowReader& read) {
  FLEETFIT_TRY(send(sql, values));
  FLEETFIT_ASSIGN(const auto answer, collect());
  return read_rows(answer.get(), read);
}

Status PostgresConnection::read_rows(const PGresult* answer, const RowReader& read) {
  for (int i = 0; i < PQntuples(answer); ++i) {
    PostgresRow row(answer, i);
    FLEETFIT_TRY(read(row));
  }
  return {};
}

Status PostgresConnection::query_each(std::string_view sql, std::span<const SqlValues> lists,
                                      const RowReader& read) {
  for (; !lists.empty(); lists = lists.subspan(std::min(lists.size(), kInFlight))) {
    for (const auto& values : lists.first(std::min(lists.size(), kInFlight)))
      FLEETFIT_TRY(send(sql, values.all()));
    FLEETFIT_ASSIGN(const auto answers, collect_all());
    for (const auto& answer : answers) FLEETFIT_TRY(read_rows(answer.get(), read));
  }
  return {};
}

Status PostgresConnection::begin(Transaction kind) {
  in_transaction_ = true;
  has_written_ = false;
  kind_ = kind;
  if (kind == Transaction::read)
    return send_plain("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  FLEETFIT_TRY(send_plain("BEGIN"));
  return send_plain("SET LOCAL synchronous_commit TO off");
}

Status PostgresConnection::commit() {
  auto sent = send_plain("COMMIT");
  // Its own commit waits for the disk, and so for all that was written to the log before.
  if (sent && has_written_ && kind_ == Transaction::write)
    sent = send_plain("SELECT pg_logical_emit_message(true, 'fleetfit', '')");
  if (!sent) return sent;
  FLEETFIT_TRY(collect());
  in_transaction_ = false;
  return {};
}

void PostgresConnection::rollback() {
  in_transaction_ = false;
  if (PQstatus(connection_.get()) != CONNECTION_OK) return;
  if (unanswered_ > 0) static_cast<void>(collect());
  if (send_plain("ROLLBACK")) static_cast<void>(collect());
}

std::string PostgresConnection::channel_of(std::string_view topic) const {
  return "fleetfit_" + core::sha256_hex(fmt::format("{} {}", address_.schema, topic)).substr(0, 24);
}

Status PostgresConnection::announce(std::string_view topic) {
  return write("SELECT pg_notify(?, '')", channel_of(topic));
}

Status PostgresConnection::listen(std::string_view topic) {
  return execute(fmt::format("LISTEN {}", channel_of(topic)));
}

Result<std::vector<std::string>> PostgresConnection::heard(milliseconds timeout) {
  struct Free {
    void operator()(PGnotify* notification) const { PQfreemem(notification); }
  };
  PGconn* connection = connection_.get();
  pollfd polled{PQsocket(connection), POLLIN, 0};
  ::poll(&polled, 1, static_cast<int>(timeout.count()));
  if (PQconsumeInput(connection) == 0 || PQstatus(connection) != CONNECTION_OK) return lost();
  std::vector<std::string> channels;
  while (const std::unique_ptr<PGnotify, Free> notification{PQnotifies(connection)})
    channels.emplace_back(notification->relname);
  return channels;
}

tl::unexpected<Error> PostgresConnection::lost() const {
  const auto why = on_one_line(PQerrorMessage(connection_.get()));
  return failure(ErrorCode::io, why.empty() ? "the connection is lost"
                                            : fmt::format("the connection is lost ({})", why));
}

// By the classes of SQLSTATE.
tl::unexpected<Error> PostgresConnection::failure_of(const PGresult* answer) const {
  const auto state = state_of(answer);
  if (state.empty()) return lost();
  const char* primary = PQresultErrorField(answer, PG_DIAG_MESSAGE_PRIMARY);
  const auto message = on_one_line(primary == nullptr ? "it refused" : primary);
  const auto is_of = [&](std::string_view kind) { return state.starts_with(kind); };
  if (state == "55P03") return failure(ErrorCode::io, "another process has kept it locked for 30s");
  if (state == "3D000") return failure(ErrorCode::io, kDatabaseGone);
  if (state == "3F000") return failure(ErrorCode::io, kSchemaGone);
  if (state == "42501")
    return failure(ErrorCode::io, fmt::format("there is no permission ({})", message));
  if (state == "42P01" || state == "42703" || state == "42883")
    return failure(ErrorCode::invalid_input,
                   fmt::format("its tables are not as they should be ({})", message));
  if (is_of("22") || is_of("23") || is_of("42") || is_of("0A"))
    return failure(ErrorCode::invalid_input, message);
  if (state == "XX001" || state == "XX002")
    return failure(ErrorCode::invalid_input, fmt::format("it is damaged ({})", message));
  return failure(ErrorCode::io, message);
}

}  // namespace fleetfit::store
