#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "fleetfit/store/records.h"

/// How values stand in a data base.
namespace fleetfit::store {

inline std::int64_t to_ms(Time time) { return time.time_since_epoch().count(); }
inline std::optional<std::int64_t> to_ms(std::optional<Time> time) {
  return time ? std::optional(to_ms(*time)) : std::nullopt;
}
inline Time from_ms(std::int64_t ms) { return Time(std::chrono::milliseconds(ms)); }

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

inline std::int64_t sql_limit(std::size_t limit) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return limit < static_cast<std::size_t>(kMost) ? static_cast<std::int64_t>(limit) : kMost;
}

}  // namespace fleetfit::store
