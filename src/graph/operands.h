#pragma once

#include <fmt/format.h>

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fleetfit/core/result.h"
#include "graph/infer_node.h"

namespace fleetfit::graph {

/// The operands of a node, safe to ask for any position: one that is not there reads as left out.
class Operands {
 public:
  explicit Operands(std::span<const Operand> all) : all_(all) {}

  std::size_t size() const { return all_.size(); }
  bool has(std::size_t i) const { return i < all_.size() && all_[i].present; }
  DType dtype(std::size_t i) const { return has(i) ? all_[i].dtype : DType::unknown; }
  const Shape* shape(std::size_t i) const { return has(i) ? all_[i].shape : nullptr; }

  /// Whole numbers of a known operand (int32 or int64).
  std::optional<Ints> ints(std::size_t i) const;

  /// Numbers of a known operand of any of the usual types.
  std::optional<std::vector<double>> numbers(std::size_t i) const;

 private:
  std::span<const Operand> all_;
};

using Outcomes = Result<std::vector<Outcome>>;

inline Outcomes one(DType dtype, std::optional<Shape> shape) {
  return std::vector<Outcome>{{dtype, std::move(shape)}};
}

/// A result of known type and unknown shape.
inline Outcomes open(DType dtype) { return one(dtype, std::nullopt); }

template <class... Args>
tl::unexpected<Error> misfit(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::invalid_input, fmt::format(format, std::forward<Args>(args)...));
}

/// An axis counted from either end, as an index; `invalid_input` if there is no such dimension.
Result<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

/// Numpy's broadcasting of two shapes.
Result<Shape> broadcast(const Shape& a, const Shape& b);

/// Axes as sorted indices; `invalid_input` if one is out of range or named twice.
Result<std::set<std::size_t>> resolve_axes(const Ints& axes, std::size_t rank);

Shape without_axes(const Shape& shape, const std::set<std::size_t>& axes);

/// The first input's shape, and its type or another.
Outcomes infer_like_first(const Operator&, const Node&, const Operands& in);
Outcomes first_shape_as(DType dtype, const Operands& in);

}  // namespace fleetfit::graph
