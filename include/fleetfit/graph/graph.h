#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/operators.h"
#include "fleetfit/graph/tensor.h"

namespace fleetfit::graph {

/// One operator at work.
struct Node {
  std::string name;
  Operator op;
  std::vector<TensorId> inputs;  ///< kNoTensor where an optional one is left out
  std::vector<TensorId> outputs;
  Activation activation;  ///< applied to the first output
};

/// A network: nodes in an order in which they can be executed, and the tensors between them.
/// A plain value. Copies share the bytes of constants.
struct Graph {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<TensorId> inputs;  ///< never constants
  std::vector<TensorId> outputs;

  const Tensor& tensor(TensorId id) const { return tensors[static_cast<std::size_t>(id)]; }
  Tensor& tensor(TensorId id) { return tensors[static_cast<std::size_t>(id)]; }

  TensorId add_tensor(Tensor tensor);

  /// A constant of 64-bit whole numbers in one dimension, as shapes, axes and pads are.
  TensorId add_ints(std::string name, const Ints& values);
  /// A constant of 32-bit floats; the shape of a single one is empty.
  TensorId add_floats(std::string name, Shape shape, const std::vector<float>& values);
};

/// The values of a constant: as whole numbers if it is int32 or int64, as doubles if it is of any
/// type of up to 32 bits, int64 or float64. Nothing if `id` is kNoTensor, no constant, or not of
/// such a type.
std::optional<Ints> constant_ints(const Graph& graph, TensorId id);
std::optional<std::vector<double>> constant_numbers(const Graph& graph, TensorId id);

/// Index of the node that makes each tensor; -1 for inputs and constants without one.
std::vector<int> producers(const Graph& graph);

/// Which nodes read which tensor.
class Consumers {
 public:
  explicit Consumers(const Graph& graph);

  /// Indices of the nodes that read a tensor, in order, each once.
  std::span<const int> operator[](std::size_t tensor) const {
    return std::span(nodes_).subspan(first_[tensor], first_[tensor + 1] - first_[tensor]);
  }

 private:
  std::vector<std::size_t> first_;  // of each tensor in nodes_, and the end
  std::vector<int> nodes_;
};

/// Whether each tensor's value is the same in every run: constants, and what is computed from them
/// alone.
std::vector<bool> static_tensors(const Graph& graph);

/// Puts the nodes in an order of execution, keeping theirs where possible. Fails with
/// `invalid_input`, naming a node, if there is a cycle or if a node reads a tensor that nothing
/// makes.
Status sort_nodes(Graph& graph);

/// Checks everything that code on graphs relies on: ids in range, one producer for each tensor,
/// order, number of inputs and outputs of each operator, sizes of constants. Fails with
/// `invalid_input`, naming the place.
Status validate(const Graph& graph);

/// Nothing if the two are the same network: same nodes in the same order, same names, same
/// constants. Ids and unused tensors do not matter. Otherwise one sentence on the first difference.
std::optional<std::string> first_difference(const Graph& a, const Graph& b);

/// What messages call a node: "node conv1 (Conv)".
std::string describe(const Node& node);

}  // namespace fleetfit::graph
