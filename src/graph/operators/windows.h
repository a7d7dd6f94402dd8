#pragma once

#include "graph/onnx/onnx_node.h"
#include "graph/operands.h"

/// What operators with windows over images share.
namespace fleetfit::graph {

/// Far beyond any real window, and small enough that products of two fit into 64 bits.
inline constexpr std::int64_t kMostWindow = std::int64_t{1} << 30;

/// Whether all of these are at least so large, and sane.
bool all_from(const Ints& values, std::int64_t least);

Status check_window(const Window& window, std::size_t spatial);

/// A batch, channels and at least one spatial dimension.
Status check_image(const Shape& shape);

/// The elements that a window covers along a dimension, with the gaps between them.
std::int64_t reach(const Window& window, std::size_t dimension);

/// How many windows fit along each spatial dimension.
Result<Ints> windows_that_fit(const Window& window, const Ints& extents);

Shape image_shape(std::int64_t batch, std::int64_t channels, const Ints& extents, Layout layout);

namespace onnx_format {

/// An attribute with one entry for each spatial dimension, or with `times` for each.
Result<Ints> per_dimension(const NodeReader& reader, std::string_view name, std::size_t spatial,
                           std::int64_t fallback, std::size_t times = 1);

Result<Window> read_window(const NodeReader& reader, Ints kernel);

/// All but the dilations, which not every operator has.
void write_window(const Window& window, NodeWriter& out);

}  // namespace onnx_format
}  // namespace fleetfit::graph
