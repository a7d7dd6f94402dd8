#pragma once

#include <optional>

#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// Whether a block has channels inside that are neither its input's nor its output's.
bool can_shrink(const graph::Graph& block);

/// The block with a share of its inner channels: the most important ones, with the slices of the
/// layers around them. Importance of a channel is the product of the norms of the weights that make
/// it and of those that read it, and of how its batch norm scales it. Widths are rounded to
/// multiples of 8 where that leaves at least 8, else of 4. Nothing if that changes nothing.
std::optional<graph::Graph> shrunk(const graph::Graph& block, double share);

/// How many classes of channels are kept, if each has so many channels.
int kept_channels(int classes, double share, int channels_each);

}  // namespace fleetfit::elastic
