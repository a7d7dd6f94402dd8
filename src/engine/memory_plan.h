#pragma once

#include <cstddef>
#include <vector>

#include "engine/plan.h"

namespace fleetfit::engine {

/// A piece of memory that is needed from one step to another, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first_step = 0;
  int last_step = 0;
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  ///< of each piece, multiples of 64
  std::size_t bytes = 0;
};

/// Gives each piece a place such that no two that are needed at the same time overlap: large ones
/// first, each into the tightest gap.
ArenaPlan plan_arena(const std::vector<Lifetime>& pieces);

/// Where each tensor of a plan lies in one arena.
struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< of each tensor; of no meaning for constants
  std::size_t bytes = 0;
};

/// Tensors that are not needed at the same time share memory. Those inside others go where these
/// go.
MemoryPlan plan_memory(const Plan& plan);

}  // namespace fleetfit::engine
