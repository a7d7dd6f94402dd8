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
    auto head = exit_head(features, output, seed + b);
    if (!head) return tl::unexpected(head.error());
    branches.push_back(
        {.kind = BranchKind::merged, .span = chain.blocks.size() - b, .graph = std::move(*head)});
  }
  if (auto ok = elastic::check_supernets({chain}); !ok) return tl::unexpected(ok.error());
  return chain;
}

Result<std::vector<Supernet>> uniform_widths(const Supernet& model) {
  const auto levels = levels_of(model);
  if (levels == 0) return fail(ErrorCode::invalid_input, "no block can be shrunk");
  std::vector<Supernet> widths = {originals_of(model)};
  for (std::size_t level = 0; level < levels; ++level) {
    Supernet width{.name = fmt::format("{} s{}", model.name, level + 1)};
    for (const auto& block : model.blocks) {
      const auto& branch = block.branches[branch_of_level(block, level)];
      width.blocks.push_back({.name = block.name, .branches = {{.graph = branch.graph}}});
    }
    widths.push_back(std::move(width));
  }
  return widths;
}

}  // namespace fleetfit::bench
