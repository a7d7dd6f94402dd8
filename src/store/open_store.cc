#include "fleetfit/store/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "fleetfit/store/store_file.h"
#include "store/sql/postgres_store.h"
#include "store/sql/sqlite_store.h"

namespace fleetfit::store {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<Store>> open_sqlite(std::string_view path, StoreUse use) {
  if (path.empty()) return fail(ErrorCode::invalid_input, "store sqlite: names no file");
  if (path.find('\0') != std::string_view::npos)
    return fail(ErrorCode::invalid_input, "store sqlite: the file's name contains a NUL character");
  return open_sqlite_store(path, {.use = use});
}

constexpr std::string_view kSqlite = "sqlite:";

bool is_open_to_others(const fs::path& file) {
  struct stat status = {};
  return ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         (status.st_mode & S_IRWXO) != 0;
}

}  // namespace

std::optional<std::string> keep_from_others(std::string_view url) {
  if (!url.starts_with(kSqlite)) return std::nullopt;
  const std::string path(url.substr(kSqlite.size()));
  bool was_open = false;
  bool is_open = false;
  for (const auto* part : {"", "-wal", "-shm"}) {
    const auto file = path + part;
    if (!is_open_to_others(file)) continue;
    was_open = true;
    is_open = ::chmod(file.c_str(), S_IRUSR | S_IWUSR) != 0 || is_open;
  }
  if (!was_open) return std::nullopt;
  const auto problem = fmt::format(
      "{}: all users of this machine could read the store, which "
      "holds hashes of tokens",
      path);
  return problem +
         (is_open ? "; its owner should run chmod 600 on it" : "; now its owner alone can");
}

Result<std::unique_ptr<Store>> open_store(std::string_view url, StoreUse use) {
  if (url == "memory:") return open_sqlite_in_memory();
  if (url.starts_with(kSqlite)) return open_sqlite(url.substr(kSqlite.size()), use);
  if (is_postgres(url)) {
    FLEETFIT_ASSIGN(const auto address, parse_postgres(url));
    return open_postgres_store(address);
  }
  return fail(ErrorCode::invalid_input,
              fmt::format("'{}' is no store; expected sqlite:PATH, postgres://… or memory:", url));
}

}  // namespace fleetfit::store
