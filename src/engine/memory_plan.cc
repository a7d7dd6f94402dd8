#include "engine/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/aligned_memory.h"

namespace fleetfit::engine {
namespace {

std::size_t align(std::size_t bytes) {
  constexpr std::size_t kAlignment = AlignedMemory::kAlignment;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Placed {
  std::size_t begin;
  std::size_t end;
  int piece;
};

bool overlap_in_time(const Lifetime& a, const Lifetime& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

/// The start of the tightest gap of `bytes` between `taken`, which are sorted by start.
std::size_t tightest_gap(const std::vector<Placed>& taken, std::size_t bytes) {
  std::size_t best = 0;
  std::size_t best_size = std::numeric_limits<std::size_t>::max();
  std::size_t reached = 0;
  for (const Placed& placed : taken) {
    if (placed.begin >= reached + bytes && placed.begin - reached < best_size) {
      best = reached;
      best_size = placed.begin - reached;
    }
    reached = std::max(reached, placed.end);
  }
  return best_size == std::numeric_limits<std::size_t>::max() ? reached : best;
}

constexpr int kUnused = -1;

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

ArenaPlan plan_arena(const std::vector<Lifetime>& pieces) {
  std::vector<int> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto piece = [&](int index) -> const Lifetime& {
    return pieces[static_cast<std::size_t>(index)];
  };
  std::ranges::stable_sort(order, [&](int a, int b) { return piece(a).bytes > piece(b).bytes; });

  ArenaPlan plan{.offsets = std::vector<std::size_t>(pieces.size(), 0)};
  std::vector<Placed> placed;
  for (const int index : order) {
    std::vector<Placed> taken;
    std::ranges::copy_if(placed, std::back_inserter(taken), [&](const Placed& other) {
      return overlap_in_time(piece(index), piece(other.piece));
    });
    std::ranges::sort(taken, {}, &Placed::begin);
    const std::size_t bytes = align(piece(index).bytes);
    const std::size_t begin = tightest_gap(taken, bytes);
    plan.offsets[static_cast<std::size_t>(index)] = begin;
    plan.bytes = std::max(plan.bytes, begin + bytes);
    placed.push_back({begin, begin + bytes, index});
  }
  return plan;
}

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
