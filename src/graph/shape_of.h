#pragma once

#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/tensor.h"

namespace fleetfit::graph {

/// The extents that a ShapeOf takes of a shape; bounds beyond the ends are cut.
Ints extents_of(const ShapeOf& op, const Shape& shape);

/// The same as the operator's result.
TensorData extents_data(const ShapeOf& op, const Shape& shape);

}  // namespace fleetfit::graph
