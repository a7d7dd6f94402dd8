#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/net_builder.h"

namespace fleetfit::adapt {

inline constexpr std::int64_t kClasses = 3;
inline constexpr std::int64_t kSide = 5;

/// Two convolutions with `inner` channels between them.
inline graph::Graph two_convolutions(std::int64_t batch, std::int64_t inner, std::uint64_t seed) {
  graph::NetBuilder net("branch", seed);
  auto x = net.input("x", {batch, 4, kSide, kSide});
  x = net.conv(x, {.out = inner, .kernel = 3, .bias = true});
  x = net.activate(x, graph::kRelu);
  net.output(net.conv(x, {.out = 4, .kernel = 3, .bias = true}), "y");
  return std::move(net).finish().value();
}

inline graph::Graph stem(std::int64_t batch) {
  graph::NetBuilder net("stem", 1);
  const auto x = net.input("image", {batch, 1, kSide, kSide});
  net.output(net.conv(x, {.out = 4, .kernel = 3, .bias = true}), "y");
  return std::move(net).finish().value();
}

inline graph::Graph head(std::int64_t batch) {
  graph::NetBuilder net("head", 2);
  const auto x = net.input("x", {batch, 4, kSide, kSide});
  net.output(net.linear(net.flatten(x), kClasses), "scores");
  return std::move(net).finish().value();
}

/// A stem, `elastic` blocks of two convolutions and a head. Each elastic block has an original, two
/// shrunk branches and, but for the last, one that stands for it and the next.
inline elastic::Supernet small_supernet(std::int64_t batch, std::size_t elastic_blocks = 3) {
  using elastic::BranchKind;
  elastic::Supernet model{.name = "small"};
  model.blocks.push_back({.name = "stem", .branches = {{.graph = stem(batch)}}});
  for (std::size_t b = 0; b < elastic_blocks; ++b) {
    const std::uint64_t seed = 10 * (b + 1);
    elastic::Block block{.name = "block" + std::to_string(b)};
    block.branches.push_back({.graph = two_convolutions(batch, 8, seed)});
    block.branches.push_back(
        {.kind = BranchKind::shrunk, .share = 0.5, .graph = two_convolutions(batch, 4, seed + 1)});
    block.branches.push_back(
        {.kind = BranchKind::shrunk, .share = 0.25, .graph = two_convolutions(batch, 2, seed + 2)});
    if (b + 1 < elastic_blocks)
      block.branches.push_back(
          {.kind = BranchKind::merged, .span = 2, .graph = two_convolutions(batch, 8, seed + 3)});
    model.blocks.push_back(std::move(block));
  }
  model.blocks.push_back({.name = "head", .branches = {{.graph = head(batch)}}});
  return model;
}

/// All designs of a space.
inline std::vector<std::vector<space::Choice>> all_designs(const elastic::SubnetSpace& space) {
  std::vector<std::vector<space::Choice>> designs;
  std::vector<space::Choice> design(space.genes().size());
  do designs.push_back(design);
  while (space.next(design));
  return designs;
}

}  // namespace fleetfit::adapt
