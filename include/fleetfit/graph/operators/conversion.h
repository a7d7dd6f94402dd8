#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/tensor_data.h"

namespace fleetfit::graph {

struct Cast {
  DType to = DType::f32;
};

/// real -> stored. Inputs: x, scale, [zero point].
struct QuantizeLinear {
  std::int64_t axis = 1;
};

/// stored -> real. Inputs: x, scale, [zero point].
struct DequantizeLinear {
  std::int64_t axis = 1;
};

/// TFLite's QUANTIZE and DEQUANTIZE: from the quantization of the input to that of the output;
/// either may have none. One input.
struct Requantize {
  DType to = DType::f32;
};

using ConversionOperators = OperatorList<Cast, QuantizeLinear, DequantizeLinear, Requantize>;

}  // namespace fleetfit::graph
