#pragma once

#include <cstdint>
#include <span>

#include "fleetfit/core/result.h"
#include "store/sql/sqlite_connection.h"

/// The tables of the database and how they came to be. `PRAGMA user_version` is the number of
/// migrations that a file has seen; `PRAGMA application_id` says our files from those of others.
namespace fleetfit::store {

/// Takes a database from one version to the next.
struct Migration {
  const char* sql;
};

struct SqliteSchema {
  std::int32_t application_id;
  std::span<const Migration> migrations;  ///< number i leads from version i to version i + 1
};

/// What this fleetfit reads and writes.
SqliteSchema current_schema();

/// Brings a new or an old database to the version of `schema`, in one step: a process that is
/// killed, or a migration that fails, leaves it as it was. Several processes may do so at once.
/// Fails with `invalid_input` on a database of another program and with `unsupported` on one of a
/// newer version; neither is changed.
Status bring_up_to_date(SqliteConnection& connection, const SqliteSchema& schema);

}  // namespace fleetfit::store
