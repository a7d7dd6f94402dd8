#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/space/source.h"

namespace fleetfit::adapt {

/// Time of one run of a network, whole and by its nodes.
struct NodeTime {
  std::string node = {};  ///< fused nodes are joined by "+"
  double ms = 0;
};
struct NetworkTime {
  double ms = 0;  ///< median of the whole
  std::vector<NodeTime> nodes = {};
};

/// Where networks are timed: the engine in this process, or a device that somebody else knows.
class NetworkTimer {
 public:
  virtual ~NetworkTimer() = default;
  virtual Result<NetworkTime> time(const graph::Graph& network) = 0;
};

/// What every branch costs on a device. The time of a subnet is the sum over its branches.
struct LatencyTable {
  std::string device = {};
  std::vector<std::vector<std::vector<double>>> ms = {};  ///< by model, block and branch
  double overhead_ms = 0;                                 ///< of every subnet
  double error_percent = 0;  ///< mean error against whole subnets that were timed as a check

  double subnet_ms(std::span<const elastic::BranchId> path) const;
};

struct ProfileOptions {
  std::uint64_t seed = 1;
  std::size_t check_subnets = 6;  ///< random subnets that are timed whole
};

/// Times few subnets that together have every branch, takes the branches' times from those of their
/// operators, and corrects them by whole subnets, as fusion across blocks makes sums differ.
Result<LatencyTable> profile_branches(const std::vector<elastic::Supernet>& models,
                                      const elastic::SubnetSpace& space, NetworkTimer& timer,
                                      const ProfileOptions& options, core::Progress& progress);

/// The table as a source of latencies for searches. Borrows both.
std::unique_ptr<const space::Source> latency_source(const elastic::SubnetSpace& space,
                                                    const LatencyTable& table);

}  // namespace fleetfit::adapt
