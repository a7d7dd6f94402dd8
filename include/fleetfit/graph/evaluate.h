#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// A plain interpreter: what each operator means, written for the reader and not for speed.
/// Constant folding and shape inference use it on small tensors, tests hold passes and fast kernels
/// against it.
namespace fleetfit::graph {

/// A tensor with its values.
struct Value {
  DType dtype = DType::f32;
  Shape shape;
  TensorData data;
  std::optional<Quantization> quantization;
};

/// Runs one node, its fused activation included. `inputs` has one entry for each input, null where
/// left out; `outputs` gives the quantization that results are to have (may be empty). Fails with
/// `unsupported` for operators and types that it does not know, `invalid_input` where operands do
/// not fit.
Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value* const> inputs,
                                    std::span<const std::optional<Quantization>> outputs = {});

/// Runs a whole graph. `inputs` in the order of graph.inputs, shapes as the graph says; gives
/// graph.outputs. Values are freed after their last use.
Result<std::vector<Value>> evaluate(const Graph& graph, std::span<const Value> inputs);

/// Inputs for a graph, uniform in [-1, 1), each depending on the seed and its position alone.
std::vector<Value> random_inputs(const Graph& graph, std::uint64_t seed);

}  // namespace fleetfit::graph
