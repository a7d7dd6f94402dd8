#include "adapt/branch_paths.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fleetfit::adapt {
namespace {

using elastic::BranchId;
using elastic::Supernet;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool mark_as_covered(const Path& path, BranchNumbers& uncovered) {
  bool any = false;
  for (const auto& [model, block, branch] : path)
    any |= std::exchange(uncovered[model][block][branch], 0) > 0;
  return any;
}

/// A way from a block to the end of the chain. Its rest is that of `next` in the following block.
struct Tail {
  double value = 0;
  double ms = 0;
  std::size_t branch = 0;
  std::size_t next_block = 0;
  std::size_t next = 0;  // place among the tails of that block
};

/// The best tails of a block by ranges of latency.
class Ranges {
 public:
  Ranges(double longest_ms, const FrontierOptions& options)
      : width_ms_(longest_ms / static_cast<double>(options.ranges)),
        most_(options.per_range),
        ranges_(options.ranges + 1) {}

  void add(const Tail& tail) {
    const auto last = static_cast<double>(ranges_.size() - 1);
    auto& range = ranges_[static_cast<std::size_t>(std::clamp(tail.ms / width_ms_, 0.0, last))];
    const auto better = [](const Tail& a, const Tail& b) { return a.value > b.value; };
    range.insert(std::upper_bound(range.begin(), range.end(), tail, better), tail);
    if (range.size() > most_) range.pop_back();
  }

  std::vector<Tail> all() const {
    std::vector<Tail> tails;
    for (const auto& range : ranges_) tails.insert(tails.end(), range.begin(), range.end());
    return tails;
  }

 private:
  double width_ms_;
  std::size_t most_;
  std::vector<std::vector<Tail>> ranges_;
};

double longest_ms(const std::vector<std::vector<double>>& blocks) {
  double sum = 0;
  for (const auto& branches : blocks) sum += std::ranges::max(branches);
  return std::max(sum, std::numeric_limits<double>::min());
}

std::vector<std::vector<Tail>> tails_of(const Supernet& model, std::size_t number,
                                        const LatencyTable& table, const PathValues& values,
                                        const FrontierOptions& options) {
  const std::size_t blocks = model.blocks.size();
  const double longest = longest_ms(table.ms[number]);
  std::vector<std::vector<Tail>> tails(blocks + 1);
  tails[blocks] = {Tail{}};
  for (std::size_t b = blocks; b-- > 0;) {
    Ranges ranges(longest, options);
    for (std::size_t i = 0; i < model.blocks[b].branches.size(); ++i) {
      const std::size_t next = b + model.blocks[b].branches[i].span;
      for (std::size_t t = 0; t < tails[next].size(); ++t)
        ranges.add({.value = tails[next][t].value + values.branches[number][b][i],
                    .ms = tails[next][t].ms + table.ms[number][b][i],
                    .branch = i,
                    .next_block = next,
                    .next = t});
    }
    tails[b] = ranges.all();
  }
  return tails;
}

}  // namespace

BranchNumbers zeros(const std::vector<Supernet>& models) {
  BranchNumbers numbers;
  for (const auto& model : models) {
    auto& blocks = numbers.emplace_back();
    for (const auto& block : model.blocks) blocks.emplace_back(block.branches.size());
  }
  return numbers;
}

std::vector<space::Choice> design_of(const elastic::SubnetSpace& space,
                                     std::span<const BranchId> path) {
  auto design = space.original(path.front().model);
  for (const auto& [model, block, branch] : path)
    if (const auto gene = space.gene_of(model, block))
      design[*gene] = static_cast<space::Choice>(branch);
  return design;
}

Path best_path(const Supernet& model, std::size_t number, const BranchNumbers& values) {
  const std::size_t blocks = model.blocks.size();
  std::vector<double> best(blocks + 1, -kInfinity);
  std::vector<std::size_t> choice(blocks);
  best[blocks] = 0;
  for (std::size_t b = blocks; b-- > 0;) {
    for (std::size_t i = 0; i < model.blocks[b].branches.size(); ++i) {
      const double value = values[number][b][i] + best[b + model.blocks[b].branches[i].span];
      if (!(value > best[b])) continue;
      best[b] = value;
      choice[b] = i;
    }
  }
  Path path;
  for (std::size_t b = 0; b < blocks; b += model.blocks[b].branches[choice[b]].span)
    path.push_back({.model = number, .block = b, .branch = choice[b]});
  return path;
}

std::vector<Path> covering_paths(const std::vector<Supernet>& models) {
  auto uncovered = zeros(models);
  for (auto& model : uncovered)
    for (auto& block : model) std::ranges::fill(block, 1.0);
  std::vector<Path> paths;
  for (std::size_t m = 0; m < models.size(); ++m) {
    while (true) {
      auto path = best_path(models[m], m, uncovered);
      if (!mark_as_covered(path, uncovered)) break;
      paths.push_back(std::move(path));
    }
  }
  return paths;
}

Path fastest_subnet(const std::vector<Supernet>& models, const LatencyTable& table) {
  auto negative = table.ms;
  for (auto& model : negative)
    for (auto& block : model)
      for (double& ms : block) ms = -ms;
  Path quickest;
  for (std::size_t m = 0; m < models.size(); ++m) {
    auto path = best_path(models[m], m, negative);
    if (quickest.empty() || table.subnet_ms(path) < table.subnet_ms(quickest))
      quickest = std::move(path);
  }
  return quickest;
}

std::vector<ValuedPath> frontier(const std::vector<Supernet>& models, const LatencyTable& table,
                                 const PathValues& values, const FrontierOptions& options) {
  std::vector<ValuedPath> paths;
  for (std::size_t m = 0; m < models.size(); ++m) {
    const auto tails = tails_of(models[m], m, table, values, options);
    for (std::size_t t = 0; t < tails[0].size(); ++t) {
      ValuedPath valued{.value = tails[0][t].value + values.offsets[m],
                        .ms = tails[0][t].ms + table.overhead_ms};
      for (std::size_t b = 0, place = t; b < models[m].blocks.size();) {
        const Tail& tail = tails[b][place];
        valued.path.push_back({.model = m, .block = b, .branch = tail.branch});
        b = tail.next_block;
        place = tail.next;
      }
      paths.push_back(std::move(valued));
    }
  }
  std::ranges::stable_sort(paths, {}, &ValuedPath::ms);
  return paths;
}

}  // namespace fleetfit::adapt
