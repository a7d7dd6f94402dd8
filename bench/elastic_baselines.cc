#include "bench/elastic_baselines.h"

#include <fmt/format.h>

#include <algorithm>

#include "fleetfit/graph/net_builder.h"

namespace fleetfit::bench {
namespace {

using elastic::Block;
using elastic::Branch;
using elastic::BranchKind;
using elastic::Supernet;
using graph::Shape;

constexpr std::size_t kImageRank = 4;  // batch, channels, height, width
constexpr std::size_t kTokenRank = 3;  // batch, tokens, channels

/// The mean over pixels or tokens, and a dense layer with the model's outputs.
Result<graph::Graph> exit_head(const Shape& features, const graph::Tensor& output,
                               std::uint64_t seed) {
  graph::NetBuilder net("exit", seed);
  const auto x = net.input("features", features);
  const auto mean =
      features.size() == kImageRank ? net.flatten(net.global_average_pool(x)) : net.mean(x, {1});
  net.output(net.linear(mean, output.shape->back()), output.name);
  return std::move(net).finish();
}

Supernet originals_of(const Supernet& model) {
  Supernet chain{.name = model.name};
  for (const auto& block : model.blocks)
    chain.blocks.push_back({.name = block.name, .branches = {block.branches.front()}});
  return chain;
}

/// Index of the shrunk branch of a level (from 0); the original's where there is none.
std::size_t branch_of_level(const Block& block, std::size_t level) {
  for (std::size_t i = 0; i < block.branches.size(); ++i) {
    if (block.branches[i].kind == BranchKind::shrunk && level-- == 0) return i;
  }
  return 0;
}

std::size_t levels_of(const Supernet& model) {
  std::ptrdiff_t most = 0;
  for (const auto& block : model.blocks)
    most = std::max(most, std::ranges::count(block.branches, BranchKind::shrunk, &Branch::kind));
  return static_cast<std::size_t>(most);
}

/// The whole network with all blocks at one level of shrinking, from 1; at 0 the original.
Result<Branch> width_of(const Supernet& model, std::size_t width) {
  Branch branch{.kind = width > 0 ? BranchKind::shrunk : BranchKind::original};
  std::vector<elastic::BranchId> path;
  for (std::size_t b = 0; b < model.blocks.size(); ++b) {
    const auto& block = model.blocks[b];
    const auto chosen = width > 0 ? branch_of_level(block, width - 1) : 0;
    branch.share = std::min(branch.share, block.branches[chosen].share);
    path.push_back({.block = b, .branch = chosen});
  }
  FLEETFIT_ASSIGN(branch.graph, elastic::join({model}, path));
  return branch;
}

}  // namespace

Result<Supernet> early_exits(const Supernet& model, std::uint64_t seed) {
  Supernet chain = originals_of(model);
  const auto& last = chain.blocks.back().branches.front().graph;
  const auto& output = last.tensor(last.outputs.front());
  if (last.outputs.size() != 1 || !output.shape || output.shape->size() != 2)
    return fail(ErrorCode::unsupported,
                "early exits are for models that give one row of classes for each image");
  // The last block is a classifier itself.
  for (std::size_t b = 1; b + 1 < chain.blocks.size(); ++b) {
    auto& branches = chain.blocks[b].branches;
    const auto& graph = branches.front().graph;
    const auto& features = *graph.tensor(graph.inputs.front()).shape;
    if (features.size() != kImageRank && features.size() != kTokenRank) continue;
    FLEETFIT_ASSIGN(auto head, exit_head(features, output, seed + b));
    branches.push_back(
        {.kind = BranchKind::merged, .span = chain.blocks.size() - b, .graph = std::move(head)});
  }
  FLEETFIT_TRY(elastic::check_supernets({chain}));
  return chain;
}

Result<Supernet> uniform_widths(const Supernet& model) {
  const auto levels = levels_of(model);
  if (levels == 0) return fail(ErrorCode::invalid_input, "no block can be shrunk");
  Block whole{.name = "network"};
  for (std::size_t width = 0; width <= levels; ++width) {
    FLEETFIT_ASSIGN(auto branch, width_of(model, width));
    whole.branches.push_back(std::move(branch));
  }
  return Supernet{.name = model.name, .blocks = {std::move(whole)}};
}

}  // namespace fleetfit::bench
