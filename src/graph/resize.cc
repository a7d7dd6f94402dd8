#include "fleetfit/graph/resize.h"

#include <algorithm>
#include <cmath>

namespace fleetfit::graph {
namespace {

// Where in the input an output position lies. ONNX's align_corners spans the unrounded extent
// in * scale.
double source_position(CoordinateMode mode, const ResizedAxis& axis, std::int64_t position) {
  const auto at = static_cast<double>(position);
  const double extent = static_cast<double>(axis.in) * axis.scale;
  switch (mode) {
    case CoordinateMode::half_pixel:
      break;
    case CoordinateMode::pytorch_half_pixel:
      if (axis.out == 1) return 0;
      break;
    case CoordinateMode::align_corners:
      return axis.out == 1 ? 0 : at * static_cast<double>(axis.in - 1) / (extent - 1);
    case CoordinateMode::asymmetric:
      return at / axis.scale;
  }
  return (at + 0.5) / axis.scale - 0.5;
}

double rounded(NearestMode mode, double position) {
  switch (mode) {
    case NearestMode::round_prefer_floor:
      return std::ceil(position - 0.5);
    case NearestMode::round_prefer_ceil:
      return std::floor(position + 0.5);
    case NearestMode::floor:
      return std::floor(position);
    case NearestMode::ceil:
      return std::ceil(position);
  }
  return position;
}

// The index at a whole-numbered position, the border's beyond the border. A position that is no
// number, as of a scale of 0, is at the border, too.
std::int64_t index_at(double position, std::int64_t extent) {
  const auto last = static_cast<double>(extent - 1);
  if (!(position > 0)) return 0;
  return static_cast<std::int64_t>(std::min(position, last));
}

ResizeTaps linear_taps(double position, std::int64_t extent) {
  const double low = std::floor(position);
  const double fraction = position - low;
  return {.count = 2,
          .index = {index_at(low, extent), index_at(low + 1, extent)},
          .weight = {1 - fraction, fraction}};
}

// Keys' cubic convolution with the coefficient a.
ResizeTaps cubic_taps(double position, std::int64_t extent, double a) {
  const double low = std::floor(position);
  ResizeTaps taps{.count = 4};
  for (std::size_t i = 0; i < 4; ++i) {
    const double offset = static_cast<double>(i) - 1;
    const double d = std::abs(position - low - offset);
    taps.index[i] = index_at(low + offset, extent);
    taps.weight[i] =
        d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  }
  return taps;
}

}  // namespace

ResizeTaps resize_taps(const Resize& op, const ResizedAxis& axis, std::int64_t position) {
  const double at = source_position(op.coordinates, axis, position);
  switch (op.mode) {
    case ResizeMode::linear:
      return linear_taps(at, axis.in);
    case ResizeMode::cubic:
      return cubic_taps(at, axis.in, op.cubic_coefficient);
    case ResizeMode::nearest:
      break;
  }
  return {.index = {index_at(rounded(op.nearest, at), axis.in)}};
}

}  // namespace fleetfit::graph
