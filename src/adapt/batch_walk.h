#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "adapt/prefix_tree.h"
#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::adapt {

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
