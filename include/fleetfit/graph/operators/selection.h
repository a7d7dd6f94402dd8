#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

/// Inputs: x, starts, ends, [axes], [steps]. The dimensions in `squeezed` (each left with one
/// element) are then dropped.
struct Slice {
  Ints squeezed;
};

/// Inputs: x, indices.
struct Gather {
  std::int64_t axis = 0;
};

/// Inputs: condition, a, b.
struct Where {};

/// Inputs: x, shape.
struct Expand {};

/// Inputs: x, repeats.
struct Tile {};

using SelectionOperators = OperatorList<Slice, Gather, Where, Expand, Tile>;

}  // namespace fleetfit::graph
