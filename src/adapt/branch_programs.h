#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <vector>

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

}  // namespace fleetfit::adapt
