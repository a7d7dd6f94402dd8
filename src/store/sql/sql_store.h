#pragma once

#include <memory>

#include "fleetfit/store/store.h"
#include "store/sql/sql_connection.h"

namespace fleetfit::store {

/// A store in a data base that has our tables. Studies and what agents do are kept by `studies` and
/// `traffic` or, if these are null, by the same.
struct SqlDatabases {
  std::unique_ptr<SqlDatabase> records = {};
  std::unique_ptr<SqlDatabase> studies = {};
  std::unique_ptr<SqlDatabase> traffic = {};
};
std::unique_ptr<Store> make_sql_store(SqlDatabases databases);

}  // namespace fleetfit::store
