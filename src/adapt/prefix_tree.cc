#include "adapt/prefix_tree.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace fleetfit::adapt {
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
