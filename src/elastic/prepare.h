#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// The model in the form in which it can be cut: what depends on constants alone is computed,
/// activations and layer norms that are written out are one node, nodes that do nothing are gone,
/// and concatenations that repeat an earlier one read that one (dense networks). Batch norms stay,
/// and shapes that depend on the batch stay computed.
Result<graph::Graph> prepared(const graph::Graph& model);

}  // namespace fleetfit::elastic
