#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "fleetfit/elastic/supernet.h"

namespace fleetfit::adapt {

/// The beginnings of subnets: a node is a branch after those of its ancestors. Node 0 is the root,
/// the images themselves. Grows with each round of subnets; remembers how much nodes were used.
class PrefixTree {
 public:
  struct Node {
    elastic::BranchId branch = {};
    std::size_t parent = 0;
    std::map<elastic::BranchId, std::size_t> children = {};
    std::size_t uses = 0;    ///< subnets of this round that begin so
    std::size_t forks = 0;   ///< children that are used in this round
    double wanted = 0;       ///< how much it was used in this round and, fading, in earlier ones
    double ms = 0;           ///< of the branch
    double prefix_ms = 0;    ///< of all up to the branch
    std::size_t bytes = 0;   ///< of its output for one batch
    bool is_cached = false;  ///< its output may be kept while its children are visited
    bool is_stored = false;  ///< its outputs are kept from round to round
  };

  PrefixTree() : nodes_(1) {}

  std::span<const Node> nodes() const { return nodes_; }
  const Node& node(std::size_t index) const { return nodes_[index]; }

  /// What a branch costs and gives.
  struct Cost {
    double ms = 0;
    std::size_t bytes = 0;
  };

  /// Begins a round: earlier ones count for less.
  void begin_round();

  /// Adds a subnet of this round; `costs` has one for each branch of the path. Gives its last node.
  std::size_t add(std::span<const elastic::BranchId> path, std::span<const Cost> costs);

  struct Memory {
    std::size_t bytes = 0;    ///< in all
    std::size_t workers = 1;  ///< that walk through the tree at the same time
    std::size_t batches = 1;  ///< for which a stored node keeps its output
  };

  /// Decides what to keep. On the way: nodes where ways part, those first whose prefix costs most
  /// and is shared most, as far as what is kept on any one way fits. With the memory that is left:
  /// from the root on, the nodes that save the most time for their bytes from round to round. Gives
  /// the bytes that are kept on the way, by all workers together.
  std::size_t plan(const Memory& memory);

  /// The subnets of this round, given by their last nodes, in an order in which those that begin
  /// alike are neighbours.
  std::vector<std::size_t> in_order(std::span<const std::size_t> ends) const;

  /// From the first branch to this one.
  std::vector<std::size_t> way_to(std::size_t node) const;

 private:
  std::size_t child_of(std::size_t parent, const elastic::BranchId& branch, const Cost& cost);
  std::size_t plan_forks(std::size_t limit);
  void plan_stored(std::size_t limit, std::size_t batches);
  std::size_t most_kept_below(std::size_t node) const;

  std::vector<Node> nodes_;
};

}  // namespace fleetfit::adapt
