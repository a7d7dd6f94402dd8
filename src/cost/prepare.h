#pragma once

#include <vector>

#include "cost/rules.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::cost {

/// A network as a framework sees it when it begins to fuse.
struct PreparedGraph {
  graph::Graph graph;
  std::vector<std::vector<int>> origins;  ///< of each node: those of the file that it stands for
  int operators_before = 0;               ///< KernelPlan::before_fusion
};

/// Runs the passes that the rules name, and remembers what became of each node.
Result<PreparedGraph> prepare_graph(const graph::Graph& graph, const KernelRuleData& rules);

/// Says of each kernel, in order of execution, whether it works on channels in blocks, and how much
/// of what it reads has to change its layout for it (`Kernel::outside_blocks`, `reordered_size`).
/// A framework without blocks, and a quantized network, leave the kernels as they are.
void lay_out_blocks(const graph::Graph& graph, const BlockRules& rules,
                    std::vector<Kernel>& kernels);

}  // namespace fleetfit::cost
