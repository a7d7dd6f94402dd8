#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::engine {

/// Whether every input has a type and a shape, and holds something.
Status check_inputs(const graph::Graph& graph);

/// Whether no weight is NaN.
Status check_weights(const graph::Graph& graph);

/// Whether every operator is known and every tensor has a type and a shape. The error lists all
/// operators that are to blame.
Status check_operators(const graph::Graph& graph);

}  // namespace fleetfit::engine
