#pragma once

#include <vector>

#include "fleetfit/graph/graph.h"

namespace fleetfit::elastic {

/// Gives a constant operand of a node these values.
inline void set_operand(graph::Graph& graph, std::size_t node, std::size_t operand,
                        const std::vector<float>& values) {
  graph.tensor(graph.nodes[node].inputs[operand]).data = graph::TensorData::copy(values);
}

inline std::vector<float> operand(const graph::Graph& graph, std::size_t node,
                                  std::size_t operand) {
  const auto values = graph.tensor(graph.nodes[node].inputs[operand]).data->as<float>();
  return {values.begin(), values.end()};
}

}  // namespace fleetfit::elastic
