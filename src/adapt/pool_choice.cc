#include <algorithm>
#include <numeric>

#include "fleetfit/adapt/pool.h"

namespace fleetfit::adapt {

std::optional<std::size_t> choose_best(std::span<const JudgedSubnet> judged, double budget_ms) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    if (judged[i].latency_ms > budget_ms) continue;
    const bool better = !best || judged[i].choice > judged[*best].choice ||
                        (judged[i].choice == judged[*best].choice &&
                         judged[i].latency_ms < judged[*best].latency_ms);
    if (better) best = i;
  }
  return best;
}

std::vector<PoolEntry> pool_entries(std::span<const JudgedSubnet> judged, std::size_t best) {
  const auto& chosen = judged[best];
  std::vector<std::size_t> order(judged.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(judged[i].latency_ms, -judged[i].accuracy);
  });
  std::vector<PoolEntry> entries;
  double accuracy = -1;
  for (const std::size_t i : order) {
    const auto& subnet = judged[i];
    const bool conflicts =
        i != best && (subnet.latency_ms <= chosen.latency_ms ? subnet.accuracy >= chosen.accuracy
                                                             : subnet.accuracy <= chosen.accuracy);
    if (conflicts || !(subnet.accuracy > accuracy)) continue;
    accuracy = subnet.accuracy;
    entries.push_back({.subnet = subnet.subnet,
                       .latency_ms = subnet.latency_ms,
                       .relative = subnet.latency_ms / chosen.latency_ms,
                       .accuracy = subnet.accuracy,
                       .measured = subnet.measured});
  }
  return entries;
}

}  // namespace fleetfit::adapt
