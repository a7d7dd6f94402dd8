#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "fleetfit/graph/graph.h"

/// What operators ask to find out whether a node hands its first input on as it is.
namespace fleetfit::graph {

template <class T>
bool all_equal_to(const std::optional<std::vector<T>>& values, T wanted) {
  return values && std::ranges::all_of(*values, [&](T value) { return value == wanted; });
}

inline bool has_input(const Node& node, std::size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoTensor;
}

/// The values of a constant input of whole numbers.
inline std::optional<Ints> ints_of(const Graph& graph, const Node& node, std::size_t i) {
  return has_input(node, i) ? constant_ints(graph, node.inputs[i]) : std::nullopt;
}

/// Whether input and output are known to have the same shape.
inline bool keeps_shape(const Graph& graph, const Node& node) {
  const auto& before = graph.tensor(node.inputs.front()).shape;
  return before && before == graph.tensor(node.outputs.front()).shape;
}

inline bool keeps_shape_of_first(const Operator&, const Graph& graph, const Node& node) {
  return keeps_shape(graph, node);
}

}  // namespace fleetfit::graph
