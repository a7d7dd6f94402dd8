#pragma once

#include <cstdint>
#include <optional>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// Samples that the network takes in one run: the first extent of its first input; nothing if that
/// has none.
std::optional<std::int64_t> batch_of(const Graph& graph);

/// The same network for so many samples at once, also where its file fixes another number: inputs
/// and the shapes that Reshape and Expand are given are changed. Fails with `unsupported` if the
/// result would not have one answer for each sample (the network mixes its samples, or fixes their
/// number in a way that is not understood), with `invalid_input` if `batch` is not positive.
Result<Graph> with_batch(Graph graph, std::int64_t batch);

}  // namespace fleetfit::graph
