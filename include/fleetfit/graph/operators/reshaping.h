#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

struct Transpose {
  Ints perm;
};

/// Inputs: x, shape (0 copies the input's extent unless allow_zero; one -1 takes the rest).
struct Reshape {
  bool allow_zero = false;
};

struct Flatten {
  std::int64_t axis = 1;
};

/// Inputs: x, [axes].
struct Squeeze {};

/// Inputs: x, axes.
struct Unsqueeze {};

struct Identity {};

/// Does nothing at inference.
struct Dropout {};

using ReshapingOperators =
    OperatorList<Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout>;

}  // namespace fleetfit::graph
