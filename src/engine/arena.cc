#include "engine/arena.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fleetfit::engine {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t align(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

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

}  // namespace fleetfit::engine
