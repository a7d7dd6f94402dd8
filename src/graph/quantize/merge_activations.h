#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::quantization {

/// Lets layers on quantized tensors apply the activation that alone reads them, so that what goes
/// into it is not rounded. Tells whether anything changed.
Result<bool> merge_activations(Graph& graph);

}  // namespace fleetfit::graph::quantization
