#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

/// Inputs: x, starts, ends, [axes], [steps]. The dimensions in `squeezed` (each left with one
/// element) are then dropped.
struct Slice {
  Ints squeezed;
  bool operator==(const Slice&) const = default;
};

/// Inputs: x, indices.
struct Gather {
  std::int64_t axis = 0;
  bool operator==(const Gather&) const = default;
};

/// Inputs: condition, a, b.
struct Where {
  bool operator==(const Where&) const = default;
};

/// Inputs: x, shape.
struct Expand {
  bool operator==(const Expand&) const = default;
};

/// Inputs: x, repeats.
struct Tile {
  bool operator==(const Tile&) const = default;
};

using SelectionOperators = OperatorList<Slice, Gather, Where, Expand, Tile>;

}  // namespace fleetfit::graph
