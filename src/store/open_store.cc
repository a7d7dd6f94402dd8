#include "fleetfit/store/store.h"

#include <fmt/format.h>

#include "store/sql/postgres_store.h"
#include "store/sql/sqlite_store.h"

namespace fleetfit::store {
namespace {

Result<std::unique_ptr<Store>> open_sqlite(std::string_view path, StoreUse use) {
  if (path.empty()) return fail(ErrorCode::invalid_input, "store sqlite: names no file");
  if (path.find('\0') != std::string_view::npos)
    return fail(ErrorCode::invalid_input, "store sqlite: the file's name contains a NUL character");
  return open_sqlite_store(path, {.use = use});
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(std::string_view url, StoreUse use) {
  constexpr std::string_view kSqlite = "sqlite:";
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
