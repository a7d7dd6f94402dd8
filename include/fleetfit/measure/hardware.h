#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

/// What the kernel says about this machine's processor and memory.
namespace fleetfit::measure {

struct Cache {
  int level = 0;             ///< from 1
  std::string type = {};     ///< "Data", "Instruction" or "Unified"
  std::int64_t bytes = 0;    ///< of one such cache
  int line_bytes = 0;        ///< 0 if unknown
  std::vector<int> cores{};  ///< that share it

  bool operator==(const Cache&) const = default;
};

/// Cores that are alike: same capacity and same highest frequency.
struct Cluster {
  std::vector<int> cores = {};
  std::optional<int> capacity = std::nullopt;                    ///< 1024 = the fastest core
  std::optional<std::int64_t> min_frequency_khz = std::nullopt;  ///< nothing without cpufreq
  std::optional<std::int64_t> max_frequency_khz = std::nullopt;

  bool operator==(const Cluster&) const = default;
};

struct Hardware {
  std::string architecture = {};  ///< "x86_64", "aarch64", …
  std::string cpu_model = {};     ///< as the kernel says it; of arm: the parts, "Cortex-A55 + …"
  std::vector<int> cores = {};    ///< numbers of those that are online
  std::vector<Cluster> clusters = {};           ///< the slowest first
  std::vector<Cache> caches = {};               ///< each once, by level; empty if unknown
  std::vector<std::string> instruction_sets{};  ///< those that make networks faster, sorted
  std::int64_t memory_bytes = 0;
  bool hypervisor = false;  ///< in a virtual machine, as far as can be seen
  std::string kernel = {};  ///< release, e.g. "6.1.0-18-amd64"

  bool operator==(const Hardware&) const = default;
};

struct HardwareOptions {
  std::filesystem::path root = "/";  ///< where `proc` and `sys` are
  std::string architecture = {};     ///< "" = that of this program
};

/// Facts that the kernel does not tell stay empty; only what every Linux has (processors, memory)
/// is an error if it cannot be read.
Result<Hardware> read_hardware(const HardwareOptions& options = {});

nlohmann::json to_json(const Hardware& hardware);

/// "0,2-3" as the kernel writes lists of cores, in increasing order without repetition. Fails with
/// `invalid_input` on anything else, and on numbers above 4095.
Result<std::vector<int>> parse_cores(std::string_view text);

}  // namespace fleetfit::measure
