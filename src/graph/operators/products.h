#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "fleetfit/graph/graph.h"

/// Counts of products, for operators whose shapes are known; nothing where they do not fit into 64
/// bits.
namespace fleetfit::graph {

using Count = std::optional<std::int64_t>;

inline const Shape& input_shape(const Graph& graph, const Node& node, std::size_t i) {
  return *graph.tensor(node.inputs[i]).shape;
}
inline const Shape& output_shape(const Graph& graph, const Node& node) {
  return *graph.tensor(node.outputs[0]).shape;
}

inline Count product(std::initializer_list<std::int64_t> factors) {
  std::int64_t count = 1;
  for (const auto factor : factors) {
    if (__builtin_mul_overflow(count, factor, &count)) return std::nullopt;
  }
  return count;
}

inline Count sum(std::initializer_list<Count> addends) {
  std::int64_t count = 0;
  for (const auto& addend : addends) {
    if (!addend || __builtin_add_overflow(count, *addend, &count)) return std::nullopt;
  }
  return count;
}

}  // namespace fleetfit::graph
