#pragma once

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// Checks that a node has as many inputs and outputs as its operator takes and that none is left
/// out that it needs. Fails with `invalid_input`, naming the node.
Status check_arity(const Node& node);

}  // namespace fleetfit::graph
