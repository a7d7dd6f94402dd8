#pragma once

#include <span>
#include <vector>

#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::cost {

/// Data flow between two kernels of a plan, by their indices.
struct KernelEdge {
  int from = 0;
  int to = 0;

  bool operator==(const KernelEdge&) const = default;
};

/// Which kernel reads what another one makes, each pair once, sorted. Nodes that are in no kernel
/// (views, what is computed from constants) hand on what they read. The graph is in an order of
/// execution, and no node is in two kernels.
std::vector<KernelEdge> kernel_edges(const graph::Graph& graph, std::span<const Kernel> kernels);

}  // namespace fleetfit::cost
