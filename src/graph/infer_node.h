#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// What is known of an operand before the network runs.
struct Operand {
  bool present = false;  ///< false: an optional input left out
  DType dtype = DType::unknown;
  const Shape* shape = nullptr;       ///< null: not known
  const TensorData* value = nullptr;  ///< null: not known; else its data, in `dtype`
};

struct Outcome {
  DType dtype = DType::unknown;
  std::optional<Shape> shape;
};

/// Type and shape of each output of a node; what depends on unknown operands is left open. Fails
/// with `invalid_input` (message without the node's name) if operands do not fit or the result
/// would be absurdly large.
Result<std::vector<Outcome>> infer_node(const Node& node, std::span<const Operand> inputs);

/// Whole numbers of int32 or int64; nothing of another type.
std::optional<Ints> ints_in(DType type, const TensorData& data);

/// Numbers of the usual types.
std::optional<std::vector<double>> numbers_in(DType type, const TensorData& data);

/// The extents that a ShapeOf takes of a shape; bounds beyond the ends are cut.
Ints extents_of(const ShapeOf& op, const Shape& shape);

/// The same as the operator's result.
TensorData extents_data(const ShapeOf& op, const Shape& shape);

}  // namespace fleetfit::graph
