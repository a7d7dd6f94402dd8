#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"

/// How far devices agree on which designs are slow. Where two of them agree, the best designs of
/// one are the best of the other, whatever the milliseconds are.
namespace fleetfit::transfer {

/// Latencies of the same designs on several devices; NaN where a design was not measured. Borrows
/// everything.
struct DeviceColumns {
  std::span<const std::string> names = {};
  std::span<const std::vector<double>> values = {};  ///< values[device][design], all of one length
};

/// Rank correlation of each device with each other.
struct CorrelationMatrix {
  std::vector<std::string> devices = {};
  std::vector<std::vector<double>> srcc = {};  ///< 1 on the diagonal
  std::vector<std::vector<std::size_t>> designs =
      {};  ///< measured on both: what the correlation was computed from
};

/// Spearman's rank correlation of all pairs; equal latencies share their mean rank. A design counts
/// for those pairs that both measured it. Fails with `invalid_input`, naming the devices, if all
/// latencies of one are equal, or if two have fewer than two designs in common or no different
/// latencies among them.
Result<CorrelationMatrix> correlation_matrix(const DeviceColumns& columns);

}  // namespace fleetfit::transfer
