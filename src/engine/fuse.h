#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::engine {

/// A node, or several that one kernel executes: a convolution with the addition that follows it, a
/// channel shuffle with the concatenation before it (its inputs) and the split after it (its
/// outputs).
struct FusedNode {
  graph::Node node;
  std::string name;                     ///< names of all nodes in it, joined by "+"
  bool adds_last_input = false;         ///< the last input is added before the activation
  std::vector<graph::Node> apart = {};  ///< then: the convolution and the addition on their own
};

/// What becomes one step.
enum class Fusing : std::uint8_t {
  all,  ///< additions too, into convolutions that oneDNN can do: no other library adds in place
  shuffles,  ///< channel shuffles alone
  nothing,   ///< every node stays a step of its own, which the interpreter can do if nobody else
};

/// The nodes of the graph in an order of execution. With `all`, an addition of the result of a
/// convolution to a tensor that nobody needs afterwards becomes part of the convolution, which adds
/// in place.
std::vector<FusedNode> fuse_nodes(const graph::Graph& graph, Fusing fusing);

}  // namespace fleetfit::engine
