#include "adapt/feature_store.h"

#include <algorithm>

namespace fleetfit::adapt {
namespace {

void raise_to(std::atomic<std::size_t>& peak, std::size_t value) {
  std::size_t seen = peak;
  while (seen < value && !peak.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

void FeatureStore::follow_plan(const PrefixTree& tree, std::size_t on_the_way) {
  std::erase_if(nodes_, [&](const auto& item) {
    if (tree.node(item.first).is_stored) return false;
    for (const auto& feature : item.second) bytes_ -= feature.size();
    return true;
  });
  for (std::size_t i = 0; i < tree.nodes().size(); ++i)
    if (tree.node(i).is_stored) nodes_[i].resize(batches_);
  on_the_way_ = on_the_way;
  raise_to(peak_bytes_, bytes_ + on_the_way_);
}

std::span<const std::byte> FeatureStore::find(std::size_t node, std::size_t batch) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return {};
  return found->second[batch];
}

void FeatureStore::store(std::size_t node, std::size_t batch, std::span<const std::byte> feature) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  found->second[batch].assign(feature.begin(), feature.end());
  bytes_ += feature.size();
  raise_to(peak_bytes_, bytes_ + on_the_way_);
}

}  // namespace fleetfit::adapt
