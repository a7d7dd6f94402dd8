#pragma once

#include <memory>

#include "fleetfit/store/store.h"
#include "store/sql/sql_connection.h"

/// Stores in data bases that have our tables.
namespace fleetfit::store {

/// Studies and what agents do are kept by `studies` and `traffic` or, if these are null, by
/// `records`.
struct SqlDatabases {
  std::unique_ptr<SqlDatabase> records = {};
  std::unique_ptr<SqlDatabase> studies = {};
  std::unique_ptr<SqlDatabase> traffic = {};
};
std::unique_ptr<Store> make_sql_store(SqlDatabases databases);

/// The studies of a data base, which is borrowed.
std::unique_ptr<StudyStore> make_sql_studies(SqlDatabase& database);

/// Both are borrowed and may be the same.
struct FleetDatabases {
  SqlDatabase& records;  ///< writes what is rare and must last; reads what may take a while
  SqlDatabase& traffic;  ///< what agents do all the time
};
std::unique_ptr<FleetStore> make_sql_fleet(const FleetDatabases& databases);

}  // namespace fleetfit::store
