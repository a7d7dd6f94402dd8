#include "graph/infer_node.h"

#include <algorithm>

#include "graph/operands.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph {
std::optional<Ints> Operands::ints(std::size_t i) const {
  if (!has(i) || all_[i].value == nullptr) return std::nullopt;
  return ints_in(all_[i].dtype, *all_[i].value);
}

std::optional<std::vector<double>> Operands::numbers(std::size_t i) const {
  if (!has(i) || all_[i].value == nullptr) return std::nullopt;
  const auto type = all_[i].dtype;
  const bool is_usual =
      type == DType::f32 || type == DType::f64 || type == DType::i32 || type == DType::i64;
  return is_usual ? numbers_in(type, *all_[i].value) : std::nullopt;
}

Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto dimensions = static_cast<std::int64_t>(rank);
  if (axis < -dimensions || axis >= dimensions) {
    return misfit("axis {} of a tensor of {} dimensions", axis, rank);
  }
  return static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 1; i <= result.size(); ++i) {
    const auto left = i <= a.size() ? a[a.size() - i] : 1;
    const auto right = i <= b.size() ? b[b.size() - i] : 1;
    if (left != right && left != 1 && right != 1) {
      return misfit("shapes {} and {} do not go together", to_string(a), to_string(b));
    }
    result[result.size() - i] = left == 1 ? right : left;
  }
  return result;
}

Result<std::set<std::size_t>> resolve_axes(const Ints& axes, std::size_t rank) {
  std::set<std::size_t> resolved;
  for (const auto axis : axes) {
    FLEETFIT_ASSIGN(const auto index, resolve_axis(axis, rank));
    if (!resolved.insert(index).second) return misfit("axis {} is named twice", axis);
  }
  return resolved;
}

Shape without_axes(const Shape& shape, const std::set<std::size_t>& axes) {
  Shape kept;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!axes.contains(i)) kept.push_back(shape[i]);
  }
  return kept;
}

Outcomes infer_like_first(const Operator&, const Node&, const Operands& in) {
  return first_shape_as(in.dtype(0), in);
}

Outcomes first_shape_as(DType dtype, const Operands& in) {
  return one(dtype, in.shape(0) ? std::optional<Shape>(*in.shape(0)) : std::nullopt);
}

Result<std::vector<Outcome>> infer_node(const Node& node, std::span<const Operand> inputs) {
  const Operands in(inputs);
  const auto infer = traits(node.op).infer;
  if (infer == nullptr) return std::vector<Outcome>(node.outputs.size());
  auto outcomes = infer(node.op, node, in);
  if (!outcomes) return outcomes;
  for (const auto& outcome : *outcomes) {
    if (!outcome.shape) continue;
    if (const auto count = element_count(*outcome.shape); !count) {
      return core::within("result", count.error());
    }
  }
  outcomes->resize(node.outputs.size());
  return outcomes;
}

}  // namespace fleetfit::graph
