#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "fleetfit/graph/blocks.h"
#include "fleetfit/space/space.h"

namespace fleetfit::space {

/// What Once-for-All's supernets have in common: five stages with 2 to 4 blocks each, and blocks
/// behind them that are always there; for each block a kernel of 3, 5 or 7 and an expansion of 3, 4
/// or 6. Genes are the depths of the stages, then the kernels and then the expansions of all
/// blocks; key columns are ks, e and d, in this order.
class ElasticStages {
 public:
  static constexpr std::size_t kStages = 5;
  static constexpr std::size_t kMostDepth = 4;

  constexpr explicit ElasticStages(std::size_t blocks_behind)
      : blocks_(kStages * kMostDepth + blocks_behind) {}

  std::vector<Gene> genes() const;

  /// A slot for each block: nine kinds, or nothing.
  std::vector<Slot> slots() const;

  constexpr std::size_t gene_count() const { return kStages + 2 * blocks_; }
  bool is_active(Design design, std::size_t gene) const;
  SlotSet active_slots(Design design) const;
  DesignCount size() const;

  /// The blocks of a stage that are there.
  std::vector<graph::SearchedLayer> layers(Design design, std::size_t stage) const;
  graph::SearchedLayer layer(Design design, std::size_t block) const;

 private:
  static std::size_t depth(Design design, std::size_t stage);

  std::size_t blocks_;
};

}  // namespace fleetfit::space
