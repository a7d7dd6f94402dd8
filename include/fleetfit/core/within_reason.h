#pragma once

#include <cmath>

/// Which numbers of files and programs are taken for what they say. No documented quantity comes
/// near these limits, and what is computed from numbers within them stays finite.
namespace fleetfit::core {

/// The largest magnitude that documents may hold (JSON, YAML, CSV): products of three such numbers
/// are still finite.
inline constexpr double kLargestNumber = 1e100;

/// The longest time of a network or a part of it, in milliseconds: four months.
inline constexpr double kLongestMs = 1e10;

/// The most energy of a run in millijoules: 2,800 kWh.
inline constexpr double kMostMillijoules = 1e13;

/// False for NaN, too.
inline bool is_within_reason(double number) { return std::abs(number) <= kLargestNumber; }

/// Whether a network, or a part of it, may take so long.
inline bool is_time_ms(double ms) { return ms > 0 && ms <= kLongestMs; }

}  // namespace fleetfit::core
