#pragma once

#include <span>
#include <string_view>

#include "fleetfit/core/result.h"
#include "store/sql/postgres_connection.h"

/// The tables in PostgreSQL and how they came to be. The table `fleetfit_version` holds the number
/// of migrations that a schema has seen.
namespace fleetfit::store {

/// What this fleetfit reads and writes; number i leads from version i to version i + 1.
std::span<const std::string_view> postgres_migrations();

/// Brings the connection's schema to the version of `migrations`, in one step, creating it if there
/// is none. Several processes may do so at once. Fails with `invalid_input` on a schema of another
/// program and with `unsupported` on one of a newer version; neither is changed.
Status bring_up_to_date(PostgresConnection& connection,
                        std::span<const std::string_view> migrations);

}  // namespace fleetfit::store
