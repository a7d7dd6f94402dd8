#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// What a network takes to run, counted from its graph alone.
namespace fleetfit::cost {

/// Of one operator. What is computed from constants alone is folded before a network runs and costs
/// nothing.
struct NodeCost {
  std::int64_t flops =
      0;  ///< 2 for each multiply-accumulate of convolutions, dense layers and matrix products
  std::int64_t params = 0;        ///< trained weights; of batch normalization scale and shift
  std::int64_t input_bytes = 0;   ///< activations read, each tensor once
  std::int64_t output_bytes = 0;  ///< activations written
  std::int64_t weight_bytes = 0;  ///< constants read, as the operator reads them
};

struct GraphCost {
  /// One for each node, in order; nothing where a shape that it depends on cannot be known, or the
  /// operator is unknown.
  std::vector<std::optional<NodeCost>> nodes;
  /// Sums over the nodes that have a cost; weights that several share count once.
  NodeCost total;
};

/// Fails with `invalid_input`, naming the node, if a count does not fit into 64 bits.
Result<GraphCost> count_cost(const graph::Graph& graph);

/// The float constants that training changes, in order of their ids: what counts as a parameter, or
/// what a parameter is computed from (a weight that is transposed first).
std::vector<graph::TensorId> trained_constants(const graph::Graph& graph);

/// The least memory for activations in which the network can run, over the orders of execution.
struct PeakMemory {
  std::int64_t bytes = 0;
  std::vector<int> order;  ///< of the nodes that gives it; those that compute nothing are left out
  bool is_least = true;    ///< false: the search was cut short, a better order may exist
};

/// Counts the tensors that are alive while each operator runs: its own inputs and outputs, and what
/// later ones still need. Reshapes and the like share the memory of their input; nothing else is
/// computed in place. Constants do not count; tensors of unknown shape cannot.
PeakMemory peak_activation_memory(const graph::Graph& graph);

}  // namespace fleetfit::cost
