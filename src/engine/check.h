#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::engine {

/// Whether every tensor has a shape and a type, none is empty, weights are numbers, and every
/// operator is known. The error names the place, or lists the operators.
Status check_runnable(const graph::Graph& graph);

}  // namespace fleetfit::engine
