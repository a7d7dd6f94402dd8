#include "adapt/branch_programs.h"

#include <fmt/format.h>

#include <utility>

namespace fleetfit::adapt {

Result<std::shared_ptr<BranchProgram>> BranchPrograms::get(const elastic::BranchId& id) {
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    ready_.splice(ready_.begin(), ready_, found->second);
    return found->second->program;
  }
  const auto& block = models_[id.model].blocks[id.block];
  auto program = engine::Program::prepare(block.branches[id.branch].graph,
                                          {.choosing = engine::Choosing::fixed});
  if (!program)
    return core::within(fmt::format("block {} ({})", id.block, block.name), program.error());
  const std::size_t bytes = program->arena_bytes() + program->weight_bytes();
  ready_.push_front(
      {id, bytes, std::make_shared<BranchProgram>(BranchProgram{*std::move(program)})});
  by_id_[id] = ready_.begin();
  bytes_ += bytes;
  make_room();
  return ready_.front().program;
}

void BranchPrograms::make_room() {
  while (bytes_ > most_bytes_ && ready_.size() > 1) {
    bytes_ -= ready_.back().bytes;
    by_id_.erase(ready_.back().id);
    ready_.pop_back();
  }
}

void BranchPrograms::forget_feature(const elastic::BranchId& id) {
  if (const auto found = by_id_.find(id); found != by_id_.end())
    found->second->program->holds = BranchProgram::kNothing;
}

void BranchPrograms::forget_features() {
  for (auto& ready : ready_) ready.program->holds = BranchProgram::kNothing;
}

}  // namespace fleetfit::adapt
