#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Stores as files that others might read.
namespace fleetfit::store {

/// Takes a store that is a file, and its logs, from all but their owner and group. Says in one
/// sentence what was the matter, if others could read it, and whether it is mended; only its owner
/// can do that.
std::optional<std::string> keep_from_others(std::string_view url);

}  // namespace fleetfit::store
