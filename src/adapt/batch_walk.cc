#include "adapt/batch_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <queue>
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

namespace {

// What was used two rounds ago is worth about half of what was used in the last one.
constexpr double kFading = 0.7;

/// How much a round in which so many subnets began alike speaks for others that will: one may be
/// chance.
double wanted_for(std::size_t uses) { return 1 - std::pow(0.5, static_cast<double>(uses)); }

}  // namespace

void PrefixTree::begin_round() {
  for (Node& node : nodes_) {
    node.wanted = kFading * (node.wanted + wanted_for(node.uses));
    node.uses = 0;
    node.forks = 0;
    node.is_cached = false;
  }
}

std::size_t PrefixTree::child_of(std::size_t parent, const elastic::BranchId& branch,
                                 const Cost& cost) {
  const auto [found, is_new] = nodes_[parent].children.try_emplace(branch, nodes_.size());
  const std::size_t child = found->second;
  if (is_new) {
    nodes_.push_back({.branch = branch,
                      .parent = parent,
                      .ms = cost.ms,
                      .prefix_ms = nodes_[parent].prefix_ms + cost.ms,
                      .bytes = cost.bytes});
  }
  return child;
}

std::size_t PrefixTree::add(std::span<const elastic::BranchId> path, std::span<const Cost> costs) {
  std::size_t at = 0;
  ++nodes_[at].uses;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::size_t child = child_of(at, path[i], costs[i]);
    if (nodes_[child].uses++ == 0) ++nodes_[at].forks;
    at = child;
  }
  return at;
}

std::vector<std::size_t> PrefixTree::way_to(std::size_t node) const {
  std::vector<std::size_t> way;
  for (; node != 0; node = nodes_[node].parent) way.push_back(node);
  std::ranges::reverse(way);
  return way;
}

std::vector<std::size_t> PrefixTree::in_order(std::span<const std::size_t> ends) const {
  std::vector<std::pair<std::vector<std::size_t>, std::size_t>> ways;
  for (const std::size_t end : ends) ways.emplace_back(way_to(end), end);
  std::ranges::sort(ways);
  std::vector<std::size_t> order;
  for (const auto& [way, end] : ways) order.push_back(end);
  return order;
}

std::size_t PrefixTree::most_kept_below(std::size_t node) const {
  std::size_t most = 0;
  for (const auto& [branch, child] : nodes_[node].children) {
    if (nodes_[child].uses == 0) continue;
    const std::size_t own = nodes_[child].is_cached ? nodes_[child].bytes : 0;
    most = std::max(most, own + most_kept_below(child));
  }
  return most;
}

std::size_t PrefixTree::plan_forks(std::size_t limit) {
  std::vector<std::size_t> forks;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    if (nodes_[i].forks > 1) forks.push_back(i);
  const auto importance = [&](std::size_t i) {
    return nodes_[i].prefix_ms * static_cast<double>(nodes_[i].uses);
  };
  std::ranges::stable_sort(forks, std::ranges::greater(), importance);
  std::size_t most = 0;
  for (const std::size_t i : forks) {
    std::size_t kept = nodes_[i].bytes + most_kept_below(i);
    for (std::size_t at = nodes_[i].parent; at != 0; at = nodes_[at].parent)
      if (nodes_[at].is_cached) kept += nodes_[at].bytes;
    if (kept > limit) continue;
    nodes_[i].is_cached = true;
    most = std::max(most, kept);
  }
  return most;
}

void PrefixTree::plan_stored(std::size_t limit, std::size_t batches) {
  const auto worth = [&](std::size_t i) {
    const Node& node = nodes_[i];
    return (node.wanted + wanted_for(node.uses)) * node.ms /
           static_cast<double>(std::max<std::size_t>(node.bytes, 1));
  };
  using Candidate = std::pair<double, std::size_t>;
  std::priority_queue<Candidate> open;
  const auto open_children = [&](std::size_t i) {
    for (const auto& [branch, child] : nodes_[i].children)
      if (!nodes_[child].children.empty()) open.emplace(worth(child), child);
  };
  for (Node& node : nodes_) node.is_stored = false;
  open_children(0);
  std::size_t left = limit;
  while (!open.empty()) {
    const auto [value, i] = open.top();
    open.pop();
    const std::size_t bytes = nodes_[i].bytes * batches;
    // One use in one round says nothing yet.
    if (bytes > left || !(nodes_[i].wanted + wanted_for(nodes_[i].uses) > wanted_for(1))) continue;
    nodes_[i].is_stored = true;
    left -= bytes;
    open_children(i);
  }
}

std::size_t PrefixTree::plan(const Memory& memory) {
  const std::size_t on_the_way = plan_forks(memory.bytes / memory.workers) * memory.workers;
  plan_stored(memory.bytes - on_the_way, memory.batches);
  return on_the_way;
}

}  // namespace fleetfit::adapt
