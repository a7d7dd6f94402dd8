#pragma once

#include "graph/evaluate/values.h"

namespace fleetfit::graph::interpreter {

/// The real numbers, in float32, that the elements stand for by the value's quantization.
Result<Value> dequantized(const Value& stored);

/// Whole numbers of `type` that stand for the given real ones: to the nearest, ties to even,
/// and to the type's bounds beyond them. The result has the quantization.
Result<Value> quantized(const Value& reals, DType type, const Quantization& quantization);

}  // namespace fleetfit::graph::interpreter
