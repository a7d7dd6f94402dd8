#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/adapt/latency_table.h"
#include "fleetfit/elastic/supernet.h"

/// Ways through supernets, found by looking at the chain from its end.
namespace fleetfit::adapt {

using Path = std::vector<elastic::BranchId>;

/// A zero for each branch.
BranchNumbers zeros(const std::vector<elastic::Supernet>& models);

/// The way through a model whose branches have the largest sum of values. Of equally good ones that
/// with the earlier branches.
Path best_path(const elastic::Supernet& model, std::size_t number, const BranchNumbers& values);

/// Few paths that together have every branch: each takes as many new branches as a path can.
std::vector<Path> covering_paths(const std::vector<elastic::Supernet>& models);

struct ValuedPath {
  Path path = {};
  double value = 0;
  double ms = 0;
};

/// What a path is worth: the offset of its model and the values of its branches.
struct PathValues {
  std::vector<double> offsets = {};
  BranchNumbers branches = {};
};

struct FrontierOptions {
  std::size_t ranges = 400;   ///< into which latencies are cut
  std::size_t per_range = 4;  ///< paths kept in each
};

/// The most valuable subnets at each latency, in the order of latency: for each small range the
/// best few, up to the rounding that cutting latencies into ranges makes.
std::vector<ValuedPath> frontier(const std::vector<elastic::Supernet>& models,
                                 const LatencyTable& table, const PathValues& values,
                                 const FrontierOptions& options = {});

}  // namespace fleetfit::adapt
