#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

namespace fleetfit::graph::onnx_format {

/// A graph while its nodes are written down one after the other in terms of what ONNX has.
/// Tensors and nodes that are added near a node are named after it and their role.
class Lowering {
 public:
  explicit Lowering(Graph& graph) : graph_(graph) {}

  const Tensor& tensor(TensorId id) const { return graph_.tensor(id); }
  Tensor& tensor(TensorId id) { return graph_.tensor(id); }

  TensorId fresh(const Node& near, std::string_view role, DType dtype = DType::f32);
  TensorId scalar(const Node& near, std::string_view role, float value);
  TensorId ints(const Node& near, std::string_view role, const Ints& values);

  void emit(const Node& near, std::string_view role, Operator op, std::vector<TensorId> inputs,
            TensorId output);
  /// A node with a result of its own.
  TensorId step(const Node& near, std::string_view role, Operator op, std::vector<TensorId> inputs);

  /// The node as it is.
  Status keep(Node node);
  /// The node with an output of 64 bits, which is then cast: ONNX's indices have 64 bits.
  Status keep_narrowed(Node node, std::size_t output, DType wanted);
  /// The same for an operator that says the type of its result.
  template <class Op>
  Status keep_with_index_type(Op op, Node node) {
    if (op.index_type == DType::i64) return keep(std::move(node));
    const auto wanted = std::exchange(op.index_type, DType::i64);
    node.op = op;
    return keep_narrowed(std::move(node), 0, wanted);
  }

 private:
  Graph& graph_;
};

/// Writes y = activation(x), also where ONNX 17 lacks the function.
void lower_activation(const Node& near, const Activation& activation, TensorId x, TensorId y,
                      Lowering& out);

/// The same network with operators that ONNX has, in the form that it has them: NCHW, no fused
/// activations, quantized tensors between QuantizeLinear and DequantizeLinear, unique names. Fails
/// with `unsupported`, naming the node.
Result<Graph> lower(Graph graph);

}  // namespace fleetfit::graph::onnx_format
