#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/adapt/timers.h"

namespace fleetfit::adapt {

/// The runs of one network over all rounds.
class RunSeries {
 public:
  /// How many runs fill a round; a tail needs more of them.
  int runs_per_round(const TimingOptions& options) const;

  void add_round(std::span<const double> run_ms);
  /// Mean times of the nodes in a round; always the same nodes.
  void add_nodes(std::vector<NodeTime> nodes);

  NetworkTime result(const TimingOptions& options) const;

 private:
  double last_run_ms_ = 0;
  std::vector<double> round_medians_;
  std::vector<double> run_ms_;
  std::vector<std::vector<NodeTime>> node_rounds_;
};

}  // namespace fleetfit::adapt
