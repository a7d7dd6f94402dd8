#include "adapt/batch_walk.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace fleetfit::adapt {

Result<BatchWalk::Feature> BatchWalk::feature(std::size_t node) {
  if (node == 0) return Feature{.bytes = std::as_bytes(parts_.images)};
  if (const auto stored = parts_.store.find(node, parts_.batch); !stored.empty())
    return Feature{.bytes = stored};
  FLEETFIT_ASSIGN(auto program, parts_.programs.get(parts_.tree.node(node).branch));
  if (program->holds != node) {
    FLEETFIT_TRY(run(node, *program));
  }
  return Feature{.bytes = program->program.output(0), .owner = program};
}

Status BatchWalk::run(std::size_t node, BranchProgram& program) {
  const std::size_t parent = parts_.tree.node(node).parent;
  FLEETFIT_ASSIGN(const auto before, feature(parent));
  const auto start = std::chrono::steady_clock::now();
  std::ranges::copy(before.bytes, program.program.input(0).begin());
  FLEETFIT_TRY(program.program.run());
  program.holds = node;
  parts_.store.store(node, parts_.batch, program.program.output(0));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  times_[parts_.tree.node(node).branch].add({.seconds = taken.count(), .runs = 1});
  // Unless it may be kept for others, what was used is gone.
  if (parent != 0 && !parts_.tree.node(parent).is_cached)
    parts_.programs.forget_feature(parts_.tree.node(parent).branch);
  return {};
}

}  // namespace fleetfit::adapt
