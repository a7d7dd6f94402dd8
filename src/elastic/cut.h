#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/elastic/supernet.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// The model in the form in which it can be cut. What depends on constants alone is computed,
/// activations and layer norms that are written out are one node, and nodes that do nothing are
/// gone. Concatenations that repeat an earlier one read that one (dense networks). Batch norms
/// stay, and shapes that depend on the batch stay computed.
Result<graph::Graph> prepared(const graph::Graph& model);

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

/// Trained numbers of a network.
Result<std::int64_t> parameters_of(const graph::Graph& graph);

/// What a network is made of, whatever the number of channels: equal for blocks of a kind.
std::string kind_of(const graph::Graph& graph);

/// Whether the network is a chain link: one input and one output of one and the same shape.
bool keeps_shape(const graph::Graph& graph);

/// The model cut, and what stood in the way of more.
struct CutModel {
  Supernet supernet = {};
  /// Share of the parameters that blocks had to be allowed for more of them to have inner channels;
  /// 0 if none was held back.
  double helpful_granularity = 0;
};

Result<CutModel> cut_model(const graph::Graph& model, double granularity);

}  // namespace fleetfit::elastic
