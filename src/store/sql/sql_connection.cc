#include "store/sql/sql_connection.h"

#include "fleetfit/core/sleep.h"

namespace fleetfit::store {

Status SqlConnection::query_each(std::string_view sql, std::span<const std::vector<SqlValue>> lists,
                                 const RowReader& read) {
  for (const auto& values : lists)
    if (auto done = query(sql, values, read); !done) return done;
  return {};
}

void SqlDatabase::wait_for(std::string_view /*topic*/, std::chrono::milliseconds timeout,
                           const std::stop_token& stop) {
  core::sleep_unless_stopped(timeout, stop);
}

}  // namespace fleetfit::store
