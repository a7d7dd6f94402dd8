#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"

namespace fleetfit::adapt {

/// Time of a node or several that a runtime has fused.
struct NodeTime {
  std::string node = {};  ///< fused nodes are joined by "+"
  double ms = 0;
};

/// Time of one run of a network, whole and by its nodes.
struct NetworkTime {
  double ms = 0;                     ///< of the whole: the median, or the tail that is asked for
  std::vector<NodeTime> nodes = {};  ///< empty if the runtime does not tell
};

/// Where networks are timed: the engine in this process, or a device that somebody else knows
/// (adapt/timers.h).
class NetworkTimer {
 public:
  virtual ~NetworkTimer() = default;

  /// Times the networks in turns, so that whatever disturbs the machine disturbs all alike; in
  /// their order.
  virtual Result<std::vector<NetworkTime>> time_in_turns(
      std::span<const graph::Graph> networks) = 0;

  Result<NetworkTime> time(const graph::Graph& network);
};

/// A number for each branch, by model, block and branch.
using BranchNumbers = std::vector<std::vector<std::vector<double>>>;

/// What every branch costs on a device. The time of a subnet is the sum over its branches.
struct LatencyTable {
  std::string device = {};
  BranchNumbers ms = {};
  double overhead_ms = 0;    ///< of every subnet
  double error_percent = 0;  ///< mean error for whole subnets that the table had not seen

  double subnet_ms(std::span<const elastic::BranchId> path) const;
};

struct ProfileOptions {
  std::uint64_t seed = 1;
  std::size_t check_subnets = 8;  ///< random subnets that are timed whole
  std::stop_token stop = {};
};

/// Times few subnets that together have every branch, takes the branches' times from those of their
/// operators, and corrects them by the times of whole subnets, as fusion across blocks makes sums
/// differ. Fails as the timer does, and with `cancelled`.
Result<LatencyTable> profile_branches(const std::vector<elastic::Supernet>& models,
                                      const elastic::SubnetSpace& space, NetworkTimer& timer,
                                      const ProfileOptions& options, core::Progress& progress);

/// A subnet that was timed whole.
struct TimedSubnet {
  std::vector<elastic::BranchId> path = {};
  double ms = 0;
};

/// Fits a table to whole subnets that were timed: its common scale, and single branches where
/// the subnets speak for it. `error_percent` becomes the mean error for each subnet as predicted
/// by the others.
LatencyTable correct_table(LatencyTable table, std::span<const TimedSubnet> timed);

/// The design that has this path.
std::vector<space::Choice> design_of(const elastic::SubnetSpace& space,
                                     std::span<const elastic::BranchId> path);

/// The quickest of all subnets.
std::vector<elastic::BranchId> fastest_subnet(const std::vector<elastic::Supernet>& models,
                                              const LatencyTable& table);

/// JSON (docs/formats/latency-table.md). Reading fails with `invalid_input`, naming the field, also
/// if the table is not that of these models.
Status write_latency_table(const LatencyTable& table, const std::filesystem::path& file);
Result<LatencyTable> read_latency_table(const std::filesystem::path& file,
                                        const std::vector<elastic::Supernet>& models);

}  // namespace fleetfit::adapt
