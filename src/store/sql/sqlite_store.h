#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "fleetfit/store/store.h"
#include "store/sql/schema.h"

namespace fleetfit::store {

class SqliteConnection;

struct SqliteStoreOptions {
  std::chrono::milliseconds patience{30'000};  ///< how long to wait while other processes write
  StoreUse use = StoreUse::read_and_write;
};

/// A store in a file, which is created if there is none. Fails as `open_store` does.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& path,
                                                 const SqliteStoreOptions& options = {});

/// A new store without a file, that lives as long as the object.
Result<std::unique_ptr<Store>> open_sqlite_in_memory();

/// `PRAGMA user_version` is the number of migrations that a file has seen; `PRAGMA application_id`
/// says our files from those of others.
struct SqliteSchema {
  std::int32_t application_id = 0;
  Migrations migrations = {};
};

/// Brings a new or an old database to the version of `schema`, in one step: a process that is
/// killed, or a migration that fails, leaves it as it was. Several processes may do so at once.
/// Fails with `invalid_input` on a database of another program and with `unsupported` on one of a
/// newer version; neither is changed.
Status bring_up_to_date(SqliteConnection& connection, const SqliteSchema& schema);

}  // namespace fleetfit::store
