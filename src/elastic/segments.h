#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// Nodes [first, end) of a graph, between two tensors through which everything flows.
struct Segment {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// Cuts a prepared model wherever just one tensor crosses (constants aside) and the next operator
/// begins a layer of its own: never between a layer and its batch norm, activation, bias, scale or
/// pooling, nor within a squeeze-excite. In the order of execution.
std::vector<Segment> find_segments(const graph::Graph& graph);

/// The nodes of a segment as a network of its own. Its input is as open in the batch as the
/// model's.
graph::Graph extract(const graph::Graph& graph, const Segment& segment);

}  // namespace fleetfit::elastic
