#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

struct Transpose {
  Ints perm;
  bool operator==(const Transpose&) const = default;
};

/// Inputs: x, shape (0 copies the input's extent unless allow_zero; one -1 takes the rest).
struct Reshape {
  bool allow_zero = false;
  bool operator==(const Reshape&) const = default;
};

struct Flatten {
  std::int64_t axis = 1;
  bool operator==(const Flatten&) const = default;
};

/// Inputs: x, [axes].
struct Squeeze {
  bool operator==(const Squeeze&) const = default;
};

/// Inputs: x, axes.
struct Unsqueeze {
  bool operator==(const Unsqueeze&) const = default;
};

struct Identity {
  bool operator==(const Identity&) const = default;
};

/// Does nothing at inference.
struct Dropout {
  bool operator==(const Dropout&) const = default;
};

using ReshapingOperators =
    OperatorList<Transpose, Reshape, Flatten, Squeeze, Unsqueeze, Identity, Dropout>;

}  // namespace fleetfit::graph
