#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>

#include "adapt/branch_programs.h"
#include "adapt/feature_store.h"
#include "adapt/prefix_tree.h"
#include "fleetfit/core/result.h"

namespace fleetfit::adapt {

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
