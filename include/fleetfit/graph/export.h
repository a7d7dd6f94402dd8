#pragma once

#include <filesystem>
#include <string>

#include "fleetfit/core/file.h"
#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph {

/// The graph as an ONNX model of opset 17. What ONNX has no operator for is written with those it
/// has: fused activations as nodes, quantized tensors as QuantizeLinear and DequantizeLinear, NHWC
/// operators between transposes. Fails with `unsupported`, naming the node, if the graph holds
/// operators that ONNX cannot express.
Result<std::string> export_onnx(const Graph& graph);

/// The same model, laid out so that its weights can be used where a mapped file has them: each
/// begins at a multiple of 64 bytes from the start.
Result<std::string> export_mappable_onnx(const Graph& graph);

/// Writes it to a file; weights of 1.5 GB and more go to `FILE.data` beside it. The file is
/// complete or not there.
Status export_onnx_file(const Graph& graph, const std::filesystem::path& file,
                        core::Durability durability = core::Durability::lasting);

}  // namespace fleetfit::graph
