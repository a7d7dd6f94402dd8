#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "fleetfit/store/store.h"

namespace fleetfit::store {

struct SqliteStoreOptions {
  std::chrono::milliseconds patience{30'000};  ///< how long to wait while other processes write
};

/// A store in a file, which is created if there is none. Fails as `open_store` does.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::filesystem::path& path,
                                                 const SqliteStoreOptions& options = {});

}  // namespace fleetfit::store
