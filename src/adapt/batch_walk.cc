#include "adapt/batch_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace fleetfit::adapt {
namespace {

void raise_to(std::atomic<std::size_t>& peak, std::size_t value) {
  std::size_t seen = peak;
  while (seen < value && !peak.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

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
