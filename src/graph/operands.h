#pragma once

#include <fmt/format.h>

#include <optional>
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

// One overload for each operator; see infer_node.
Outcomes infer(const Conv&, const Node&, const Operands&);
Outcomes infer(const ConvTranspose&, const Node&, const Operands&);
Outcomes infer(const Gemm&, const Node&, const Operands&);
Outcomes infer(const MatMul&, const Node&, const Operands&);
Outcomes infer(const MultiHeadAttention&, const Node&, const Operands&);
Outcomes infer(const BatchNorm&, const Node&, const Operands&);
Outcomes infer(const LayerNorm&, const Node&, const Operands&);
Outcomes infer(const Pool&, const Node&, const Operands&);
Outcomes infer(const GlobalPool&, const Node&, const Operands&);
Outcomes infer(const Softmax&, const Node&, const Operands&);
Outcomes infer(const LpNormalization&, const Node&, const Operands&);
Outcomes infer(const Elementwise&, const Node&, const Operands&);
Outcomes infer(const Where&, const Node&, const Operands&);
Outcomes infer(const Concat&, const Node&, const Operands&);
Outcomes infer(const Split&, const Node&, const Operands&);
Outcomes infer(const Slice&, const Node&, const Operands&);
Outcomes infer(const Pad&, const Node&, const Operands&);
Outcomes infer(const Resize&, const Node&, const Operands&);
Outcomes infer(const Transpose&, const Node&, const Operands&);
Outcomes infer(const Reshape&, const Node&, const Operands&);
Outcomes infer(const Flatten&, const Node&, const Operands&);
Outcomes infer(const Squeeze&, const Node&, const Operands&);
Outcomes infer(const Unsqueeze&, const Node&, const Operands&);
Outcomes infer(const Expand&, const Node&, const Operands&);
Outcomes infer(const Tile&, const Node&, const Operands&);
Outcomes infer(const Gather&, const Node&, const Operands&);
Outcomes infer(const Stack&, const Node&, const Operands&);
Outcomes infer(const Unstack&, const Node&, const Operands&);
Outcomes infer(const DepthToSpace&, const Node&, const Operands&);
Outcomes infer(const SpaceToDepth&, const Node&, const Operands&);
Outcomes infer(const SpaceToBatch&, const Node&, const Operands&);
Outcomes infer(const BatchToSpace&, const Node&, const Operands&);
Outcomes infer(const ChannelShuffle&, const Node&, const Operands&);
Outcomes infer(const Reduce&, const Node&, const Operands&);
Outcomes infer(const ArgExtreme&, const Node&, const Operands&);
Outcomes infer(const TopK&, const Node&, const Operands&);
Outcomes infer(const ConstantOfShape&, const Node&, const Operands&);
Outcomes infer(const ShapeOf&, const Node&, const Operands&);
Outcomes infer(const Range&, const Node&, const Operands&);

}  // namespace fleetfit::graph
