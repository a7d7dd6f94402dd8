#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fleetfit::space {

/// What a number of a design is.
enum class Quantity : std::uint8_t { latency_ms, energy_mj, memory_mb, accuracy };

/// "latency_ms", "energy_mj", "memory_mb", "accuracy".
constexpr std::string_view to_string(Quantity quantity) {
  constexpr std::array<std::string_view, 4> kNames = {"latency_ms", "energy_mj", "memory_mb",
                                                      "accuracy"};
  return kNames[static_cast<std::size_t>(quantity)];
}

/// "ms", "mJ", "MB"; accuracy has none.
constexpr std::string_view unit_of(Quantity quantity) {
  constexpr std::array<std::string_view, 4> kUnits = {"ms", "mJ", "MB", ""};
  return kUnits[static_cast<std::size_t>(quantity)];
}

}  // namespace fleetfit::space
