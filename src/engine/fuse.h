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
  std::string name;              ///< names of all nodes in it, joined by "+"
  bool adds_last_input = false;  ///< the last input is added before the activation
};

/// What happens to additions that follow a convolution.
enum class Additions : std::uint8_t {
  fused,  ///< into convolutions that oneDNN can do: no other library adds in place
  kept,   ///< as nodes of their own
};

/// The nodes of the graph in an order of execution. With `fused`, an addition of the result of a
/// convolution to a tensor that nobody needs afterwards becomes part of the convolution, which adds
/// in place.
std::vector<FusedNode> fuse_nodes(const graph::Graph& graph, Additions additions);

}  // namespace fleetfit::engine
