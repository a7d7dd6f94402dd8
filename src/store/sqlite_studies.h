#pragma once

#include <memory>
#include <mutex>

#include "fleetfit/store/study_store.h"
#include "store/sqlite_connection.h"

namespace fleetfit::store {

/// The studies of a database. Connection and mutex, which guards it, are borrowed.
std::unique_ptr<StudyStore> make_sqlite_studies(SqliteConnection& connection, std::mutex& mutex);

}  // namespace fleetfit::store
