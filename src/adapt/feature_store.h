#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "adapt/prefix_tree.h"

namespace fleetfit::adapt {

/// Outputs of the prefixes that are kept from round to round, for each batch. Batches may be worked
/// on by different threads at the same time, each by one.
class FeatureStore {
 public:
  explicit FeatureStore(std::size_t batches) : batches_(batches) {}

  /// Drops what the tree's plan does not store any more, and makes place for what it does.
  /// `on_the_way` is kept elsewhere and counts for the peak. No thread may be at work.
  void follow_plan(const PrefixTree& tree, std::size_t on_the_way);

  /// The feature of a node; empty if it is not there.
  std::span<const std::byte> find(std::size_t node, std::size_t batch) const;

  /// Keeps the feature if the plan says so.
  void store(std::size_t node, std::size_t batch, std::span<const std::byte> feature);

  /// Most bytes that were kept at a time.
  std::size_t peak_bytes() const { return peak_bytes_; }

 private:
  std::size_t batches_;
  std::map<std::size_t, std::vector<std::vector<std::byte>>> nodes_;  // by batch
  std::size_t on_the_way_ = 0;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<std::size_t> peak_bytes_ = 0;
};

}  // namespace fleetfit::adapt
