#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::own {

/// A number for each of three spatial dimensions. Images of fewer have an extent of 1 in the first.
using Spatial = std::array<std::int64_t, 3>;

/// An image of batch x channels x up to three spatial dimensions, in either layout.
struct ImageShape {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  Spatial extents{1, 1, 1};

  std::int64_t pixels() const { return extents[0] * extents[1] * extents[2]; }
};
/// Nothing for more dimensions than that.
std::optional<ImageShape> image_shape(const graph::Shape& shape, graph::Layout layout);

/// A half-open range of indices.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// A window that slides over an image.
struct Sliding {
  Spatial kernel{1, 1, 1};
  Spatial strides{1, 1, 1};
  Spatial dilations{1, 1, 1};
  Spatial pads{0, 0, 0};      ///< before the image
  Spatial pads_end{0, 0, 0};  ///< behind it

  /// Where in the image a tap of the kernel meets an output position; may be outside.
  std::int64_t position(std::size_t axis, std::int64_t out, std::int64_t tap) const {
    return out * strides[axis] + tap * dilations[axis] - pads[axis];
  }
  /// The taps that meet [low, high) of the image.
  Range taps(std::size_t axis, std::int64_t out, std::int64_t low, std::int64_t high) const;
  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};
Sliding sliding(const graph::Window& window, const graph::Padding& padding);

}  // namespace fleetfit::engine::own
