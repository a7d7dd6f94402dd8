#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>

namespace fleetfit::store {

/// What tests are told by tools/with-postgres: a server to try; empty if there is none.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

/// The URL of a new, empty store in that server; empty if there is none.
inline std::string new_postgres_store() {
  static int count = 0;
  const auto server = environment("FLEETFIT_TEST_POSTGRES");
  if (server.empty()) return "";
  return server + "&schema=t" + std::to_string(::getpid()) + "_" + std::to_string(++count);
}

}  // namespace fleetfit::store
