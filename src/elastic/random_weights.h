#pragma once

#include <cstdint>

#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// Forgets what a network has learned: weights are drawn again (He's rule), batch norms start as
/// the identity, biases at zero.
void randomize_weights(graph::Graph& graph, std::uint64_t seed);

}  // namespace fleetfit::elastic
