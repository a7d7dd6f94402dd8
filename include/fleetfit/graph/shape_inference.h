#pragma once

#include <map>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// Computes type and shape of every tensor from the inputs on, following shapes that the network
/// itself computes (Shape, Gather, Concat, … before a Reshape). What cannot be known keeps what the
/// file declared. Fails with `invalid_input`, naming the node, if operands do not fit.
Status infer_shapes(Graph& graph);

/// Gives named open dimensions of the inputs (Tensor::symbols) these extents and infers all shapes
/// again. Names that no input has are ignored.
Status bind_dimensions(Graph& graph, const std::map<std::string, std::int64_t>& extents);

/// Padding before and after each spatial dimension for this input: auto_pad resolved.
struct Padding {
  Ints begin;
  Ints end;
};
Padding resolve_padding(const Window& window, const Ints& spatial_extents);

/// Of a transposed convolution, for these extents of its input and its output, which determine it
/// where it is not given.
Padding resolve_padding(const ConvTranspose& conv, const Ints& in, const Ints& out);

/// Spatial extents of an image tensor, in order, and the position of its channels.
Ints spatial_extents(const Shape& shape, Layout layout);
std::size_t channel_axis(const Shape& shape, Layout layout);

}  // namespace fleetfit::graph
