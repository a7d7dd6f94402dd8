#include "store/sql_connection.h"

#include "fleetfit/core/sleep.h"

namespace fleetfit::store {

void SqlDatabase::wait_for(std::string_view /*topic*/, std::chrono::milliseconds timeout,
                           const std::stop_token& stop) {
  core::sleep_unless_stopped(timeout, stop);
}

}  // namespace fleetfit::store
