#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"

namespace fleetfit::graph {

enum class PadMode : std::uint8_t { constant, reflect, edge };

/// Inputs: x, pads (begins, then ends), [value].
struct Pad {
  PadMode mode = PadMode::constant;
};

enum class ResizeMode : std::uint8_t { nearest, linear, cubic };

enum class CoordinateMode : std::uint8_t {
  half_pixel,
  pytorch_half_pixel,
  align_corners,
  asymmetric
};

enum class NearestMode : std::uint8_t { round_prefer_floor, round_prefer_ceil, floor, ceil };

/// Inputs: x, [region of interest], [scales], [sizes]; one of scales and sizes.
struct Resize {
  ResizeMode mode = ResizeMode::nearest;
  CoordinateMode coordinates = CoordinateMode::half_pixel;
  NearestMode nearest = NearestMode::round_prefer_floor;
  float cubic_coefficient = -0.75F;
};

using ResizingOperators = OperatorList<Pad, Resize>;

}  // namespace fleetfit::graph
