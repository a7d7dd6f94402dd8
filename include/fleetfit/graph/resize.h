#pragma once

#include <array>
#include <cstdint>

#include "fleetfit/graph/operators.h"

namespace fleetfit::graph {

/// One dimension of a resize.
struct ResizedAxis {
  std::int64_t in = 0;
  std::int64_t out = 0;
  double scale = 1;  ///< as given, which need not be out / in

  bool changes() const { return in != out || scale != 1; }
};

/// The input elements whose weighted sum is an output element.
struct ResizeTaps {
  int count = 1;  ///< 1 for nearest, 2 for linear, 4 for cubic
  std::array<std::int64_t, 4> index = {};
  std::array<double, 4> weight = {1};
};

/// Where the output element at `position` of the axis comes from. The axis has elements.
ResizeTaps resize_taps(const Resize& op, const ResizedAxis& axis, std::int64_t position);

}  // namespace fleetfit::graph
