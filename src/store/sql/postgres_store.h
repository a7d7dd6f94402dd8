#pragma once

#include <memory>

#include "fleetfit/store/store.h"
#include "store/sql/postgres_address.h"

namespace fleetfit::store {

/// A store in a data base, whose tables are created if there are none. Fails as `open_store` does.
///
/// Connections are kept in a pool, one for each thread that is using the store. A connection that
/// is lost fails the call that was using it with `io`; the next one connects again, trying for a
/// second or two.
Result<std::unique_ptr<Store>> open_postgres_store(const PostgresAddress& address);

}  // namespace fleetfit::store
