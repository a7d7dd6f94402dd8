#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fleetfit/store/store.h"
#include "store/sql/schema.h"

namespace fleetfit::store {

class PostgresConnection;

/// Where a store in PostgreSQL is.
struct PostgresAddress {
  std::string url = {};     ///< for libpq; may hold a password: never to be printed
  std::string schema = {};  ///< that our tables are in
  std::string name = {};    ///< for messages: host, port and data base
};

bool is_postgres(std::string_view url);

/// Fails with `invalid_input` on what libpq would refuse, and on a schema whose name is not of
/// letters, digits and underscores. Messages repeat nothing of the text.
Result<PostgresAddress> parse_postgres(std::string_view url);

/// A store in a data base, whose tables are created if there are none. Fails as `open_store` does.
///
/// Connections are kept in a pool, one for each thread that is using the store. A connection that
/// is lost fails the call that was using it with `io`; the next one connects again, trying for a
/// second or two.
Result<std::unique_ptr<Store>> open_postgres_store(const PostgresAddress& address);

/// Brings the connection's schema to the version of `migrations`, in one step, creating it if there
/// is none. Its table `fleetfit_version` holds the number of those that it has seen. Several
/// processes may do so at once. Fails with `invalid_input` on a schema of another program and with
/// `unsupported` on one of a newer version; neither is changed.
Status bring_up_to_date(PostgresConnection& connection, Migrations migrations);

}  // namespace fleetfit::store
