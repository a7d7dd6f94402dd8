#pragma once

#include <vector>

#include "engine/plan.h"

namespace fleetfit::engine {

/// Where each tensor of a plan lies in one arena.
struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< of each tensor; of no meaning for constants
  std::size_t bytes = 0;
};

/// Tensors that are not needed at the same time share memory. Those inside others go where these
/// go.
MemoryPlan plan_memory(const Plan& plan);

}  // namespace fleetfit::engine
