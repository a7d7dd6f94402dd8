#pragma once

#include <cstdint>
#include <optional>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/tensor_data.h"

namespace fleetfit::graph {

/// No input; the output tensor holds the data.
struct Constant {};

/// Input: shape. Fills with one value.
struct ConstantOfShape {
  DType dtype = DType::f32;
  double value = 0;
};

/// The extents [start, end) of the input. ONNX gives them as int64, TFLite also as int32.
struct ShapeOf {
  std::int64_t start = 0;
  std::optional<std::int64_t> end;
  DType index_type = DType::i64;
};

/// Inputs: start, limit, delta.
struct Range {};

using ConstantOperators = OperatorList<Constant, ConstantOfShape, ShapeOf, Range>;

}  // namespace fleetfit::graph
