#pragma once

#include <string>
#include <string_view>

#include "fleetfit/core/result.h"

namespace fleetfit::store {

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

}  // namespace fleetfit::store
