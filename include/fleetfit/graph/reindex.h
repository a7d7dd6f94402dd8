#pragma once

#include <map>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/channels.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// For axes that change: which old positions stand there now, in order. A position may be left out
/// or be there several times.
using Positions = std::map<TensorAxis, std::vector<int>>;

/// The network with other channels: constants are gathered, and numbers of groups, sizes of splits
/// and shapes of reshapes follow. The positions have to agree with `Channels`. Fails with
/// `unsupported` where the network computes a shape in a way that does not follow.
Result<Graph> reindexed(const Graph& graph, const Positions& positions);

}  // namespace fleetfit::graph
