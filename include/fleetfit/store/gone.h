#pragma once

#include <string_view>

#include "fleetfit/core/result.h"

/// Stores that fail with `io` may come back: a lock ends, a server is started again, a disk has
/// room again. Some do not, and waiting for them would be in vain.
namespace fleetfit::store {

/// What is said of such a store, behind its name.
inline constexpr std::string_view kFileGone = "it was removed or replaced while it was in use";
inline constexpr std::string_view kDatabaseGone = "there is no such data base on the server";
inline constexpr std::string_view kSchemaGone = "its schema is gone";

/// Whether a store's error is one of these.
bool cannot_come_back(const Error& error);

}  // namespace fleetfit::store
