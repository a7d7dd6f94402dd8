#pragma once

#include <memory>

#include "fleetfit/store/study_store.h"
#include "store/sql/sql_connection.h"

namespace fleetfit::store {

/// The studies of a data base, which is borrowed.
std::unique_ptr<StudyStore> make_sql_studies(SqlDatabase& database);

}  // namespace fleetfit::store
