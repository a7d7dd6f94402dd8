#pragma once

#include <vector>

#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/net_builder.h"

namespace fleetfit::elastic {

/// A network that multiplies by a factor.
inline graph::Graph times(double factor, const graph::Shape& shape = {1, 2}) {
  graph::NetBuilder net("times", 1);
  net.output(net.scale(net.input("x", shape), factor), "y");
  return std::move(net).finish().value();
}

inline Branch branch(BranchKind kind, double factor, std::size_t span = 1) {
  return {.kind = kind, .span = span, .graph = times(factor)};
}

/// Three blocks whose branches multiply by different primes; the last has no choice.
inline Supernet scaling_supernet(std::string name = "scaling") {
  using enum BranchKind;
  return {.name = std::move(name),
          .blocks = {{.name = "first",
                      .branches = {branch(original, 2), branch(shrunk, 3), branch(merged, 5, 2),
                                   branch(merged, 17, 3)}},
                     {.name = "second", .branches = {branch(original, 7), branch(shrunk, 11)}},
                     {.name = "last", .branches = {branch(original, 13)}}}};
}

}  // namespace fleetfit::elastic
