#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// The model in the form in which it can be cut. What depends on constants alone is computed,
/// activations and layer norms that are written out are one node, and nodes that do nothing are
/// gone. Concatenations that repeat an earlier one read that one (dense networks). Batch norms
/// stay, and shapes that depend on the batch stay computed.
Result<graph::Graph> prepared(const graph::Graph& model);

}  // namespace fleetfit::elastic
