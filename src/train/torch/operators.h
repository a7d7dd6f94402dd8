#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/graph/graph.h"

/// What each operator of a graph computes, in terms of torch, so that gradients flow through it.
namespace fleetfit::train {

/// How batch norm works.
struct NormMode {
  bool batch_statistics = false;
  double momentum = 0.1;
};

/// How Dropout works: it leaves out a share of the elements, chosen by the seed and the node.
struct DropMode {
  double share = 0;  ///< 0: none
  std::uint64_t seed = 0;
};

/// A node at work. Floats are float32 on the network's device, whole numbers int64 on the CPU.
struct OperatorCall {
  const graph::Graph& graph;
  const graph::Node& node;
  const std::vector<bool>& is_static;  ///< of each tensor of the graph
  std::vector<at::Tensor> inputs;      ///< undefined where left out
  std::int64_t graph_batch = 1;        ///< the extent that stands for the batch in the graph
  std::int64_t batch = 1;              ///< what it is in this run
  NormMode norm;
  DropMode drop;
  /// The first operand was made by a layer that does not look at it again, and nobody else will:
  /// its memory may be used for the result.
  bool may_overwrite = false;

  const at::Tensor& in(std::size_t i) const { return inputs[i]; }
  at::Tensor optional(std::size_t i) const { return i < inputs.size() ? inputs[i] : at::Tensor(); }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  bool is_static_input(std::size_t i) const {
    return is_static[static_cast<std::size_t>(node.inputs[i])];
  }
};

/// Runs the node, its fused activation included. Throws what torch throws.
std::vector<at::Tensor> run_operator(const OperatorCall& call);

/// Whether gradients through the operator do not need its results, and these are its own.
bool forgets_results(const graph::Operator& op);

/// Why the operator cannot be run; nothing if it can.
std::optional<std::string> why_not_trainable(const graph::Operator& op);

/// The element type in which torch holds values of a graph; nothing for one that it does not.
std::optional<at::ScalarType> scalar_type_of(graph::DType type);

}  // namespace fleetfit::train
