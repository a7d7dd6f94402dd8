#pragma once

#include <memory>

#include "fleetfit/store/store.h"
#include "store/sql_connection.h"

namespace fleetfit::store {

/// A store in a data base that has our tables. Studies are kept by `studies` or, if that is null,
/// by the same.
std::unique_ptr<Store> make_sql_store(std::unique_ptr<SqlDatabase> database,
                                      std::unique_ptr<SqlDatabase> studies = nullptr);

}  // namespace fleetfit::store
