#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::onnx_format {

/// The same network with operators that ONNX has, in the form that it has them: NCHW, no fused
/// activations, quantized tensors between QuantizeLinear and DequantizeLinear, unique names. Fails
/// with `unsupported`, naming the node.
Result<Graph> lower(Graph graph);

}  // namespace fleetfit::graph::onnx_format
