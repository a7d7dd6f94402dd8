#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace fleetfit::core {
struct Fields;
}

/// What else happened on the machine while something was measured.
namespace fleetfit::measure {

/// A look at the machine. What the kernel does not tell is nothing.
struct SystemState {
  std::optional<double> load = std::nullopt;                 ///< of the last minute
  std::optional<std::int64_t> frequency_khz = std::nullopt;  ///< mean over the cores
  std::int64_t steal_ticks = 0;  ///< CPU time that the hypervisor gave to others
  std::int64_t idle_ticks = 0;   ///< CPU time that nobody used, waiting for disks included
  std::int64_t all_ticks = 0;    ///< CPU time in all, idle as well; 0 if unknown
  std::string kernel = {};       ///< release
};

/// `root` is the folder where `proc` and `sys` are.
SystemState read_system_state(const std::filesystem::path& root = "/");

struct Conditions {
  std::optional<double> load_before = std::nullopt;
  std::optional<double> load_after = std::nullopt;
  std::optional<std::int64_t> frequency_khz_before = std::nullopt;
  std::optional<std::int64_t> frequency_khz_after = std::nullopt;
  std::optional<double> steal_share = std::nullopt;  ///< of all CPU time between the two
  std::string kernel = {};

  bool operator==(const Conditions&) const = default;
};
core::Fields fields_of(const Conditions*);

Conditions conditions_between(const SystemState& before, const SystemState& after);

}  // namespace fleetfit::measure
