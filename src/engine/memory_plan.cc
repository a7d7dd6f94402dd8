#include "engine/memory_plan.h"

#include <algorithm>

#include "engine/aligned_memory.h"
#include "engine/arena.h"

namespace fleetfit::engine {
namespace {

constexpr int kUnused = -1;

std::size_t index(int tensor) { return static_cast<std::size_t>(tensor); }

/// The tensor that holds the memory of another, and where in it that one begins.
Place root_of(const Plan& plan, int tensor) {
  Place place{tensor, 0};
  while (const auto& inside = plan.tensors[index(place.tensor)].inside) {
    place = {inside->tensor, place.offset + inside->offset};
  }
  return place;
}

class Lifetimes {
 public:
  explicit Lifetimes(const Plan& plan)
      : plan_(plan), of_tensor_(plan.tensors.size(), {0, kUnused, kUnused}) {
    const int last = static_cast<int>(plan.steps.size());
    for (int step = 0; step < last; ++step) {
      const PlannedStep& planned = plan.steps[index(step)];
      for (const int tensor : planned.inputs) use(tensor, step);
      for (const int tensor : planned.outputs) use(tensor, step);
    }
    // Inputs keep their values from one run to the next, outputs until the next run.
    for (const int tensor : plan.inputs) use(tensor, 0), use(tensor, last);
    for (const int tensor : plan.outputs) use(tensor, 0), use(tensor, last);
  }

  const std::vector<Lifetime>& all() const { return of_tensor_; }

 private:
  void use(int tensor, int step) {
    if (tensor < 0 || plan_.tensors[index(tensor)].operand.constant) return;
    const Place root = root_of(plan_, tensor);
    Lifetime& lifetime = of_tensor_[index(root.tensor)];
    const std::size_t bytes =
        storage_bytes(plan_.tensors[index(tensor)].operand) + AlignedMemory::kSpareBytes;
    lifetime.bytes = std::max(lifetime.bytes, root.offset + bytes);
    lifetime.first_step =
        lifetime.first_step == kUnused ? step : std::min(lifetime.first_step, step);
    lifetime.last_step = std::max(lifetime.last_step, step);
  }

  const Plan& plan_;
  std::vector<Lifetime> of_tensor_;
};

}  // namespace

MemoryPlan plan_memory(const Plan& plan) {
  const Lifetimes lifetimes(plan);
  std::vector<Lifetime> pieces;
  std::vector<std::size_t> piece_of(plan.tensors.size(), 0);
  for (std::size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    piece_of[tensor] = pieces.size();
    if (lifetimes.all()[tensor].bytes > 0) pieces.push_back(lifetimes.all()[tensor]);
  }
  const ArenaPlan arena = plan_arena(pieces);
  MemoryPlan memory{.offsets = std::vector<std::size_t>(plan.tensors.size(), 0),
                    .bytes = arena.bytes};
  for (std::size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    const Place root = root_of(plan, static_cast<int>(tensor));
    const std::size_t piece = piece_of[index(root.tensor)];
    if (lifetimes.all()[index(root.tensor)].bytes > 0) {
      memory.offsets[tensor] = arena.offsets[piece] + root.offset;
    }
  }
  return memory;
}

}  // namespace fleetfit::engine
