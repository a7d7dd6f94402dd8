#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

/// What numbers of a kind may be, where they are read from files: a digit too many should be found
/// in its row, not in what is worked out from it.
namespace fleetfit::core {

struct PlausibleRange {
  std::string_view what;  ///< "latency"
  double least;           ///< above 0: what is not positive is refused as such
  double most;
  std::string_view too_large;  ///< "it is longer than a day"
};

inline constexpr double kDayMs = 24 * 3600 * 1e3;

/// Nothing that is measured is as quick as the least or takes longer than a day.
inline constexpr PlausibleRange kPlausibleLatencyMs{"latency", 1e-9, kDayMs,
                                                    "it is longer than a day"};
/// At most a megawatt for a day.
inline constexpr PlausibleRange kPlausibleEnergyMj{"energy", 1e-9, kDayMs * 1e6,
                                                   "it is more than a megawatt for a day"};
inline constexpr PlausibleRange kPlausibleMemoryMb{"memory", 1e-9, 1e9,
                                                   "it is more than a petabyte"};
inline constexpr PlausibleRange kPlausiblePowerMw{"power", 0, 1e9, "it is more than a megawatt"};
/// Shares, percents, and whatever else says how good a design is: losses are below 0.
inline constexpr PlausibleRange kPlausibleAccuracy{"accuracy", -1e6, 1e6,
                                                   "it is larger than 1,000,000"};
/// Of what a device has: cores, bytes, FLOPs a second.
inline constexpr PlausibleRange kPlausibleAmount{"amount", 0, 1e18, "it is larger than 1e18"};

/// The largest magnitude that documents may hold (JSON, YAML, CSV), whatever the number says:
/// products of three such numbers are still finite.
inline constexpr double kLargestNumber = 1e100;

/// False for NaN, too.
inline bool is_within_reason(double number) { return std::abs(number) <= kLargestNumber; }

/// Whether a network, or a part of it, may take so long.
inline bool is_time_ms(double ms) { return ms > 0 && ms <= kDayMs; }

/// What is wrong with a number, to be put behind it: "is no latency: it is longer than a day".
std::optional<std::string> absurdity(const PlausibleRange& range, double value);

}  // namespace fleetfit::core
