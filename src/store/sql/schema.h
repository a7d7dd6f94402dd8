#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "fleetfit/core/result.h"
#include "store/sql/sql_connection.h"

/// The tables and how they came to be.
namespace fleetfit::store {

/// SQL that takes a data base from one version to the next.
using Migration = std::string_view;
/// Number i leads from version i to version i + 1.
using Migrations = std::span<const Migration>;

/// What this fleetfit reads and writes.
Migrations sqlite_migrations();
Migrations postgres_migrations();

/// Fails with `unsupported` if a data base of that version was written by a newer fleetfit.
Status check_version(const SqlConnection& connection, std::size_t version, Migrations migrations);
/// Those that a data base of that version has not seen.
Status run_migrations(SqlConnection& connection, std::size_t version, Migrations migrations);

}  // namespace fleetfit::store
