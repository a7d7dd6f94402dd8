#include "store/sql/sqlite_connection.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "fleetfit/core/file_descriptor.h"
#include "fleetfit/core/program.h"
#include "fleetfit/store/gone.h"

namespace fleetfit::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNoDatabase = "it is not an SQLite database";

// Whether an input or output error came while reading.
bool is_of_reading(sqlite3* database) {
  const int code = sqlite3_extended_errcode(database);
  return code == SQLITE_IOERR_READ || code == SQLITE_IOERR_SHORT_READ;
}

// What SQLite says, and the system behind it if that has said something.
std::string what_and_why(std::string_view message, sqlite3* database) {
  const int error = sqlite3_system_errno(database);
  if (error == 0) return std::string(message);
  return fmt::format("{} ({})", message, core::system_message(error));
}

std::string system_reason(sqlite3* database) {
  const int error = sqlite3_system_errno(database);
  return error == 0 ? sqlite3_errmsg(database) : core::system_message(error);
}

tl::unexpected<Error> cannot_open(const fs::path& path, ErrorCode code, std::string_view reason) {
  return fail(code, fmt::format("cannot open {}: {}", path.string(), reason));
}

// Refuses what SQLite would wait for, or would overwrite as if it were empty, such as a file of one
// byte. Looks without opening: closing a file drops the locks that this process holds on it.
Status check_kind_of_file(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) return {};
  if (fs::is_directory(status))
    return cannot_open(path, ErrorCode::invalid_input, "it is a folder");
  if (!fs::is_regular_file(status))
    return cannot_open(path, ErrorCode::invalid_input, "it is not a regular file");
  if (fs::file_size(path, error) == 1)
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", path.string(), kNoDatabase));
  return {};
}

// Why a file could not be opened or created. SQLite tries more than one way and says why the last
// one failed, which says little.
std::string reason_not_to_open(const fs::path& path, sqlite3* database) {
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  const fs::path refused = exists ? path : path.parent_path();
  const int access = exists ? R_OK | W_OK : W_OK | X_OK;
  if (::faccessat(AT_FDCWD, refused.c_str(), access, AT_EACCESS) != 0)
    return core::system_message(errno);
  return system_reason(database);
}

// SQLite would make a file that everybody can read, and gives its logs the same permissions; stores
// hold hashes of tokens. If it cannot be made, or exists, SQLite says what there is to say.
void create_private(const fs::path& path) {
  const core::FileDescriptor created(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
}

bool may_write(const fs::path& path, int also = 0) {
  return ::faccessat(AT_FDCWD, path.c_str(), W_OK | also, AT_EACCESS) == 0;
}

// What only says something else in a URI.
std::string in_uri(const fs::path& path) {
  std::string text;
  for (const char c : path.native()) {
    const bool is_special = c == '%' || c == '?' || c == '#';
    text += is_special ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return text;
}

int bind(sqlite3_stmt* statement, int index, std::string_view text) {
  // A null pointer would be NULL.
  const char* bytes = text.data() == nullptr ? "" : text.data();
  return sqlite3_bind_text64(statement, index, bytes, text.size(), nullptr, SQLITE_UTF8);
}

int bind(sqlite3_stmt* statement, int index, const SqlValue& value) {
  if (value.is_null) return sqlite3_bind_null(statement, index);
  if (const auto* text = std::get_if<std::string_view>(&value.value))
    return bind(statement, index, *text);
  if (const auto* number = std::get_if<double>(&value.value))
    return sqlite3_bind_double(statement, index, *number);
  if (const auto* truth = std::get_if<bool>(&value.value))
    return sqlite3_bind_int(statement, index, *truth ? 1 : 0);
  return sqlite3_bind_int64(statement, index, std::get<std::int64_t>(value.value));
}

/// The rows of a statement that is executed.
class SqliteRow final : public SqlRow {
 public:
  explicit SqliteRow(sqlite3_stmt* statement) : statement_(statement) {}

  std::string text() override {
    const auto* bytes = sqlite3_column_text(statement_, column_);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_));
    ++column_;
    if (bytes == nullptr) return {};
    return {reinterpret_cast<const char*>(bytes), size};
  }
  std::int64_t integer() override { return sqlite3_column_int64(statement_, column_++); }
  double number() override { return sqlite3_column_double(statement_, column_++); }
  bool boolean() override { return integer() != 0; }

  bool is_null() const override { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }
  void skip() override { ++column_; }

 private:
  sqlite3_stmt* statement_;
  int column_ = 0;
};

}  // namespace

void SqliteConnection::Reset::operator()(sqlite3_stmt* statement) const {
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open(
    const fs::path& path, std::chrono::milliseconds patience) {
  create_private(path);
  auto connection = open_with(path, patience, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  // SQLite opens what it may not write for reading only.
  if (connection && sqlite3_db_readonly((*connection)->database_.get(), "main") == 1)
    return (*connection)->failure(ErrorCode::io, "there is no permission to write it");
  return connection;
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open_for_reading(
    const fs::path& path, std::chrono::milliseconds patience) {
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return cannot_open(path, ErrorCode::not_found, "there is no such file");
  return open_with(path, patience, SQLITE_OPEN_READONLY);
}

// Readers of a log share a file beside it with its writers, which cannot be created there. Without
// a log that holds anything the file is all, and needs nothing beside it.
Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open_unwritable(
    const fs::path& path, std::chrono::milliseconds patience) {
  FLEETFIT_ASSIGN(auto connection, open_for_reading(path, patience));
  if (connection->integer("SELECT count(*) FROM sqlite_schema")) return connection;
  const int code = sqlite3_errcode(connection->database_.get()) & 0xff;
  if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY) return connection;
  auto log = path;
  log += "-wal";
  std::error_code none;
  if (const auto bytes = fs::file_size(log, none); !none && bytes > 0)
    return connection->failure(
        ErrorCode::io, fmt::format("its newest records are in {}, which can be read only where a "
                                   "file can be created beside it: copy both to such a folder",
                                   log.string()));
  return open_with(path, patience, SQLITE_OPEN_READONLY, "immutable=1");
}

bool is_writable(const fs::path& file) {
  std::error_code ignored;
  const auto absolute = fs::absolute(file, ignored);
  return may_write(absolute.parent_path(), X_OK) &&
         (!fs::exists(absolute, ignored) || may_write(absolute));
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open_with(
    const fs::path& path, std::chrono::milliseconds patience, int flags,
    std::string_view parameters) {
  FLEETFIT_TRY(check_kind_of_file(path));
  // An absolute path, as SQLite gives names such as ":memory:" a meaning of their own.
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) return cannot_open(path, ErrorCode::io, error.message());

  sqlite3* database = nullptr;
  const auto name = parameters.empty() ? absolute.string()
                                       : fmt::format("file://{}?{}", in_uri(absolute), parameters);
  if (!parameters.empty()) flags |= SQLITE_OPEN_URI;
  const int code = sqlite3_open_v2(name.c_str(), &database, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<SqliteConnection> connection(
      new SqliteConnection(path.string(), patience, database));
  if (code != SQLITE_OK)
    return cannot_open(path, ErrorCode::io, reason_not_to_open(absolute, database));
  connection->prepare_connection();
  return connection;
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::open_in_memory() {
  sqlite3* database = nullptr;
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(":memory:", &database, kFlags, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection("memory:", {}, database));
  if (code != SQLITE_OK) return connection->failure();
  connection->prepare_connection();
  return connection;
}

void SqliteConnection::prepare_connection() {
  sqlite3* database = database_.get();
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, static_cast<int>(patience_.count()));
  // A file from elsewhere must not make SQLite do more than read tables.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

Status SqliteConnection::execute(const std::string& script) {
  if (sqlite3_exec(database_.get(), script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return failure();
  return {};
}

Status SqliteConnection::check_still_there() {
  if (sqlite3_get_autocommit(database_.get()) == 0) return {};
  int has_moved = 0;
  sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  if (has_moved == 0) return {};
  return failure(ErrorCode::io, kFileGone);
}

Result<SqliteConnection::Statement> SqliteConnection::prepare(std::string_view sql,
                                                              std::span<const SqlValue> values) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return failure();
    found = statements_.try_emplace(std::string(sql), statement).first;
  }
  Statement statement(found->second.get());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int bound = bind(statement.get(), static_cast<int>(i) + 1, values[i]);
    if (bound != SQLITE_OK) return failure(ErrorCode::invalid_input, sqlite3_errstr(bound));
  }
  return statement;
}

Status SqliteConnection::query(std::string_view sql, std::span<const SqlValue> values,
                               const RowReader& read) {
  FLEETFIT_ASSIGN(const auto statement, prepare(sql, values));
  for (;;) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return failure();
    SqliteRow row(statement.get());
    FLEETFIT_TRY(read(row));
  }
}

Status SqliteConnection::run(std::string_view sql, std::span<const SqlValue> values) {
  FLEETFIT_TRY(check_still_there());
  return query(sql, values, [](SqlRow& /*row*/) { return Status{}; });
}

Result<std::int64_t> SqliteConnection::run_counted(std::string_view sql,
                                                   std::span<const SqlValue> values) {
  return run(sql, values).map([&] { return sqlite3_changes64(database_.get()); });
}

Result<std::int64_t> SqliteConnection::integer(std::string_view sql) {
  std::int64_t value = 0;
  FLEETFIT_TRY(query(sql, {}, [&](SqlRow& row) {
    value = row.integer();
    return Status{};
  }));
  return value;
}

Status SqliteConnection::begin(Transaction kind) {
  FLEETFIT_TRY(check_still_there());
  return execute(kind == Transaction::read ? "BEGIN" : "BEGIN IMMEDIATE");
}

void SqliteConnection::rollback() {
  if (sqlite3_get_autocommit(database_.get()) == 0)
    sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

tl::unexpected<Error> SqliteConnection::failure() const {
  sqlite3* database = database_.get();
  const std::string message =
      core::one_line(sqlite3_errmsg(database));  // may quote the file's content
  if (sqlite3_extended_errcode(database) == SQLITE_READONLY_DBMOVED)
    return failure(ErrorCode::io, kFileGone);
  switch (sqlite3_extended_errcode(database) & 0xff) {
    case SQLITE_NOTADB:
      return failure(ErrorCode::invalid_input, kNoDatabase);
    case SQLITE_CORRUPT:
      return failure(ErrorCode::invalid_input, fmt::format("it is damaged ({})", message));
    case SQLITE_ERROR:
      return failure(ErrorCode::invalid_input,
                     fmt::format("its tables are not as they should be ({})", message));
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return failure(ErrorCode::invalid_input, message);
    case SQLITE_BUSY:
      return failure(ErrorCode::io,
                     fmt::format("another process has kept it locked for {}", patience_));
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
      return failure(ErrorCode::internal, message);
    case SQLITE_READONLY:
      return failure(ErrorCode::io,
                     "it was opened where it cannot be written, and only to read it");
    case SQLITE_FULL:
      return failure(ErrorCode::io, "the disk is full");
    case SQLITE_IOERR:
      return failure(ErrorCode::io, fmt::format("the system refused to {} it ({})",
                                                is_of_reading(database) ? "read" : "write",
                                                system_reason(database)));
    default:
      return failure(ErrorCode::io, what_and_why(message, database));
  }
}

}  // namespace fleetfit::store
