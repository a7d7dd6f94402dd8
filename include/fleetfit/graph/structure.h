#pragma once

#include <string>

#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// Identity of a network without its weights, 64 hexadecimal digits: the same for two networks that
/// cost the same wherever they run. Operators, attributes, shapes, types, connections and constants
/// that say how to compute (shapes, axes, pads: whole numbers of 64 bits, or of 32 bits that are no
/// quantized weights) make it; names, the order of nodes, values of weights and of quantization
/// parameters, names of open dimensions and the graph's name do not. The graph has to be valid.
std::string structure_id(const Graph& graph);

}  // namespace fleetfit::graph
