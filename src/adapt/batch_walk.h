#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/engine/program.h"

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

/// A branch made ready to run, and what its output stands for.
struct BranchProgram {
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

  engine::Program program;
  std::size_t holds = kNothing;  ///< the node of the prefix tree whose feature the output is
};

/// Branches made ready when they are first needed; those not used for the longest time go when
/// there are too many. Belongs to one thread.
class BranchPrograms {
 public:
  /// Borrows the models. Kernels are not chosen by time: results would depend on it.
  BranchPrograms(const std::vector<elastic::Supernet>& models, std::size_t most_bytes)
      : models_(models), most_bytes_(most_bytes) {}

  /// The program stays for its holders even if it goes from here. Fails as the engine does, naming
  /// the block.
  Result<std::shared_ptr<BranchProgram>> get(const elastic::BranchId& id);

  /// What the branch's program holds, or all of them hold, is not to be used any more.
  void forget_feature(const elastic::BranchId& id);
  void forget_features();

 private:
  struct Ready {
    elastic::BranchId id;
    std::size_t bytes;
    std::shared_ptr<BranchProgram> program;  // shared with those who just run it
  };
  void make_room();

  const std::vector<elastic::Supernet>& models_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<Ready> ready_;  // the one used last first
  std::map<elastic::BranchId, std::list<Ready>::iterator> by_id_;
};

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

/// How often a branch was run, and how long that took.
struct RunTime {
  double seconds = 0;
  std::size_t runs = 0;

  void add(const RunTime& other) {
    seconds += other.seconds;
    runs += other.runs;
  }
};
using RunTimes = std::map<elastic::BranchId, RunTime>;

/// A batch of images on its way through the prefix tree: works features out when they are asked
/// for, from the last one that was kept. Borrows everything; belongs to one thread.
class BatchWalk {
 public:
  struct Parts {
    const PrefixTree& tree;
    FeatureStore& store;
    BranchPrograms& programs;  ///< for this walk alone
    std::span<const float> images = {};
    std::size_t batch = 0;  ///< its number
  };

  explicit BatchWalk(const Parts& parts) : parts_(parts) { parts_.programs.forget_features(); }

  /// Bytes, and what keeps them alive.
  struct Feature {
    std::span<const std::byte> bytes = {};
    std::shared_ptr<const void> owner = {};  ///< the program, which may be dropped meanwhile
  };

  /// What a node of the tree gives. Fails as the engine does.
  Result<Feature> feature(std::size_t node);

  const RunTimes& times() const { return times_; }

 private:
  Status run(std::size_t node, BranchProgram& program);

  Parts parts_;
  RunTimes times_;
};

}  // namespace fleetfit::adapt
