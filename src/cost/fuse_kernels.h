#pragma once

#include <string>
#include <vector>

#include "cost/rules.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::cost {

/// Nodes of a prepared graph that run as one.
struct NodeGroup {
  std::vector<int> nodes;  ///< in order of execution
  int anchor = 0;          ///< the one that does the work
  bool activated = false;  ///< an activation is part of it
};

/// Every node that costs something in one group, by the rules for a family of devices; groups in an
/// order of execution.
std::vector<NodeGroup> fuse_kernels(const graph::Graph& graph, const KernelRuleData& rules,
                                    const std::string& family);

}  // namespace fleetfit::cost
