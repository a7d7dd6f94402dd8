#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fleetfit::core {
struct Fields;
}

namespace fleetfit::tune {

/// What a worker needs on a cluster. What is absent or empty is left to the cluster.
struct Resources {
  std::optional<std::int64_t> cores = std::nullopt;
  std::optional<std::int64_t> memory_bytes = std::nullopt;
  std::optional<std::int64_t> gpus = std::nullopt;
  std::optional<std::int64_t> time_min = std::nullopt;  ///< after which it is ended and replaced
  std::string partition = {};
  std::string constraint = {};  ///< features of nodes, in Slurm's words: "a100&nvlink"
  std::string account = {};

  bool operator==(const Resources&) const = default;
};
core::Fields fields_of(const Resources*);

}  // namespace fleetfit::tune
