#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

namespace fleetfit::core {
struct Fields;
}

namespace fleetfit::adapt {

/// A subnet that a device may switch to.
struct PoolEntry {
  std::string subnet = {};  ///< its text in the bundle's space
  double latency_ms = 0;    ///< as estimated when it was found
  double relative = 1;      ///< latency_ms / that of the pool's best
  double accuracy = 0;      ///< on the device's data
  bool measured = false;    ///< whether latency_ms is of the whole subnet, or a sum of its branches
};
core::Fields fields_of(const PoolEntry*);

/// The best subnets of a bundle on one device at different levels of latency: each is more accurate
/// than all that are quicker. In the order of latency.
struct SubnetPool {
  std::string device = {};
  std::string bundle_sha256 = {};  ///< of the bundle's manifest; a pool fits its bundle alone
  double budget_ms = 0;
  std::string best = {};  ///< the subnet that was chosen for the budget
  std::vector<PoolEntry> entries = {};
};
core::Fields fields_of(const SubnetPool*);

/// A subnet that was timed whole and evaluated on other images than it was searched with.
struct JudgedSubnet {
  std::string subnet = {};
  double latency_ms = 0;
  bool measured = false;
  double choice = 0;    ///< what the best is chosen by: its score on images of the device
  double accuracy = 0;  ///< on images that nothing was chosen by
};

/// The one with the best score within the budget; of equal ones the quicker. Nothing if none is.
std::optional<std::size_t> choose_best(std::span<const JudgedSubnet> judged, double budget_ms);

/// The best and those that are quicker or more accurate than all of the others. Whatever accuracy
/// says, the best stays: it was chosen without looking at it.
std::vector<PoolEntry> pool_entries(std::span<const JudgedSubnet> judged, std::size_t best);

/// JSON (docs/formats/pool.md). Reading fails with `invalid_input`, naming the field.
Status write_pool(const SubnetPool& pool, const std::filesystem::path& file);
Result<SubnetPool> read_pool(const std::filesystem::path& file);

}  // namespace fleetfit::adapt
