#pragma once

#include <set>

#include "fleetfit/graph/channels.h"

namespace fleetfit::graph {

/// Convolutions (by number of their node) whose groups each lose the same positions, rather than
/// losing whole groups.
using ThinnedGroups = std::set<std::size_t>;

/// Tells the channels what a node ties together.
void link_node(const Graph& graph, std::size_t node, const ThinnedGroups& thinned,
               Channels& channels);

}  // namespace fleetfit::graph
