#include "graph/shape_of.h"

#include <algorithm>

namespace fleetfit::graph {

Ints extents_of(const ShapeOf& op, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto position = [rank](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const auto start = position(op.start);
  const auto end = std::max(start, position(op.end.value_or(rank)));
  return {shape.begin() + start, shape.begin() + end};
}

TensorData extents_data(const ShapeOf& op, const Shape& shape) {
  const auto extents = extents_of(op, shape);
  if (op.index_type == DType::i64) return TensorData::copy(extents);
  std::vector<std::int32_t> narrow;
  for (const auto extent : extents) narrow.push_back(static_cast<std::int32_t>(extent));
  return TensorData::copy(narrow);
}

}  // namespace fleetfit::graph
