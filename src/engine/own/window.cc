#include "engine/own/window.h"

namespace fleetfit::engine::own {
namespace {

/// The last entries of a list; `missing` for those that it does not have.
Spatial to_spatial(const graph::Ints& values, std::int64_t missing) {
  Spatial all{missing, missing, missing};
  std::copy_backward(values.begin(), values.end(), all.end());
  return all;
}

}  // namespace

std::optional<ImageShape> image_shape(const graph::Shape& shape, graph::Layout layout) {
  if (shape.size() < 3 || shape.size() > 5) return std::nullopt;
  return ImageShape{shape[0], shape[graph::channel_axis(shape, layout)],
                    to_spatial(graph::spatial_extents(shape, layout), 1)};
}

Range Sliding::taps(std::size_t axis, std::int64_t out, std::int64_t low, std::int64_t high) const {
  const std::int64_t first = position(axis, out, 0);
  const std::int64_t step = dilations[axis];
  const auto reached = [&](std::int64_t bound) {  // the first tap at or behind it
    return first >= bound ? 0 : (bound - first + step - 1) / step;
  };
  const std::int64_t begin = std::min(reached(low), kernel[axis]);
  return {begin, std::clamp(reached(high), begin, kernel[axis])};
}

Sliding sliding(const graph::Window& window, const graph::Padding& padding) {
  return {to_spatial(window.kernel, 1), to_spatial(window.strides, 1),
          to_spatial(window.dilations, 1), to_spatial(padding.begin, 0),
          to_spatial(padding.end, 0)};
}

}  // namespace fleetfit::engine::own
