#pragma once

#include <memory>

#include "fleetfit/store/fleet_store.h"
#include "store/sql/sql_connection.h"

namespace fleetfit::store {

/// Both are borrowed and may be the same.
struct FleetDatabases {
  SqlDatabase& records;  ///< writes what is rare and must last; reads what may take a while
  SqlDatabase& traffic;  ///< what agents do all the time
};

std::unique_ptr<FleetStore> make_sql_fleet(const FleetDatabases& databases);

}  // namespace fleetfit::store
