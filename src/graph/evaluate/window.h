#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/tensor.h"

namespace fleetfit::graph::interpreter {

/// A number for each of three spatial dimensions: depth, height and width. Images of fewer
/// dimensions have an extent of 1 in the first ones.
using Spatial = std::array<std::int64_t, 3>;

inline std::int64_t volume(const Spatial& extents) { return extents[0] * extents[1] * extents[2]; }

/// The last entries of a list; `missing` for those that it does not have.
inline Spatial to_spatial(const Ints& values, std::int64_t missing) {
  Spatial all{missing, missing, missing};
  std::copy_backward(values.begin(), values.end(), all.end());
  return all;
}

/// Spatial extents of an N x C x … tensor.
inline Spatial spatial_of(const Shape& shape) {
  return to_spatial(Ints(shape.begin() + 2, shape.end()), 1);
}

/// A window that slides over an image: where an output position and a tap of the kernel meet the
/// image.
struct Sliding {
  Spatial kernel{1, 1, 1};
  Spatial strides{1, 1, 1};
  Spatial dilations{1, 1, 1};
  Spatial pads{0, 0, 0};  ///< before the image

  std::int64_t position(std::size_t axis, std::int64_t out, std::int64_t tap) const {
    return out * strides[axis] + tap * dilations[axis] - pads[axis];
  }
};

inline Sliding sliding(const Window& window, const Ints& pads_begin) {
  return {to_spatial(window.kernel, 1), to_spatial(window.strides, 1),
          to_spatial(window.dilations, 1), to_spatial(pads_begin, 0)};
}

/// A half-open range of indices.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// The i below `count` for which first + i * step lies in [0, extent).
inline Span indices_inside(std::int64_t first, std::int64_t step, std::int64_t extent,
                           std::int64_t count) {
  const auto reached = [&](std::int64_t bound) {  // the first i with first + i * step >= bound
    return first >= bound ? 0 : (bound - first + step - 1) / step;
  };
  const auto begin = std::min(reached(0), count);
  return {begin, std::clamp(reached(extent), begin, count)};
}

}  // namespace fleetfit::graph::interpreter
