#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/core/result.h"

namespace fleetfit::app {

struct ProxyTableOptions {
  std::size_t subnets = 20;  ///< to time on the device
  std::uint64_t seed = 1;
};

/// The latency table of one device adapted to another by a few subnets that are timed there: the
/// subnets are a space, and the table is a linear proxy (transfer/adaproxy.h). Fails as the timer
/// does, and with `invalid_input` if there are too few subnets to tell anything.
Result<adapt::LatencyTable> table_from_proxy(const std::vector<elastic::Supernet>& models,
                                             const elastic::SubnetSpace& space,
                                             const adapt::LatencyTable& proxy,
                                             adapt::NetworkTimer& timer,
                                             const ProxyTableOptions& options = {});

}  // namespace fleetfit::app
