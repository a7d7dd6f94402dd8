#pragma once

#include <optional>
#include <span>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// Whether a block has channels inside that are neither its input's nor its output's.
bool can_shrink(const Graph& block);

/// The block with a share of its inner channels: the most important ones, with the slices of the
/// layers around them. Importance of a channel is the product of the norms of the weights that make
/// it and of those that read it, and of how its batch norm scales it. Widths are rounded to
/// multiples of 8 where that leaves at least 8, else of 4. Nothing if that changes nothing.
std::optional<Graph> shrunk(const Graph& block, double share);

/// A whole network pruned in the same way: cut into as many stretches as there are shares, each
/// with about as many convolutions and dense layers, it keeps of each stretch's channels its share.
/// What stretches have in common, as shortcuts do, takes the share of the first of them. Inputs and
/// outputs stay as they are; the network itself where nothing changes. Fails with `invalid_input`
/// if there are no shares or one is not above 0 and at most 1, and with `unsupported` as
/// `reindexed` does.
Result<Graph> pruned(const Graph& network, std::span<const double> shares);

/// How many classes of channels are kept, if each has so many channels.
int kept_channels(int classes, double share, int channels_each);

}  // namespace fleetfit::graph
