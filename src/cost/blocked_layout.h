#pragma once

#include <vector>

#include "cost/rules.h"
#include "fleetfit/cost/kernels.h"

namespace fleetfit::cost {

/// Says of each kernel, in order of execution, whether it works on channels in blocks, and how much
/// of what it reads has to change its layout for it (`Kernel::outside_blocks`, `reordered_size`).
/// A framework without blocks, and a quantized network, leave the kernels as they are.
void lay_out_blocks(const graph::Graph& graph, const BlockRules& rules,
                    std::vector<Kernel>& kernels);

}  // namespace fleetfit::cost
