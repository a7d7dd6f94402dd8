#pragma once

#include <span>
#include <vector>

#include "graph/evaluate/values.h"

/// What each operator computes. Operands were checked by infer_node before, so that their shapes
/// fit; their values were not.
namespace fleetfit::graph::interpreter {

/// An operator's operands and the types and shapes of its results. Operands are plain: numbers that
/// were quantized or of half precision arrive as float32, and the results that would be so are to
/// be float32.
struct Call {
  std::span<const Value* const> inputs;  ///< null where left out
  std::vector<Form> results;

  const Value& input(std::size_t i) const { return *inputs[i]; }
  const Value* optional(std::size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  const Form& result() const { return results.front(); }
};

using Values = Result<std::vector<Value>>;

inline Values one(Value value) { return std::vector<Value>{std::move(value)}; }
inline Values one(Result<Value> value) {
  FLEETFIT_TRY(value);
  return one(*std::move(value));
}

/// The function's value at `x`.
double apply(const Activation& activation, double x);

/// The function on every element; whole numbers stay whole numbers.
Value activate(const Value& x, const Activation& activation);

// One overload for each operator that computes something.
Values run(const Conv&, const Call&);
Values run(const ConvTranspose&, const Call&);
Values run(const Gemm&, const Call&);
Values run(const MatMul&, const Call&);
Values run(const MultiHeadAttention&, const Call&);
Values run(const BatchNorm&, const Call&);
Values run(const InstanceNorm&, const Call&);
Values run(const LayerNorm&, const Call&);
Values run(const PRelu&, const Call&);
Values run(const Pool&, const Call&);
Values run(const GlobalPool&, const Call&);
Values run(const Lrn&, const Call&);
Values run(const LpNormalization&, const Call&);
Values run(const Softmax&, const Call&);
Values run(const Activate&, const Call&);
Values run(const Unary&, const Call&);
Values run(const Elementwise&, const Call&);
Values run(const Where&, const Call&);
Values run(const Cast&, const Call&);
Values run(const QuantizeLinear&, const Call&);
Values run(const DequantizeLinear&, const Call&);
Values run(const Concat&, const Call&);
Values run(const Split&, const Call&);
Values run(const Slice&, const Call&);
Values run(const Pad&, const Call&);
Values run(const Resize&, const Call&);
Values run(const Transpose&, const Call&);
Values run(const Reshape&, const Call&);
Values run(const Flatten&, const Call&);
Values run(const Squeeze&, const Call&);
Values run(const Unsqueeze&, const Call&);
Values run(const Expand&, const Call&);
Values run(const Tile&, const Call&);
Values run(const Gather&, const Call&);
Values run(const Stack&, const Call&);
Values run(const Unstack&, const Call&);
Values run(const DepthToSpace&, const Call&);
Values run(const SpaceToDepth&, const Call&);
Values run(const SpaceToBatch&, const Call&);
Values run(const BatchToSpace&, const Call&);
Values run(const ChannelShuffle&, const Call&);
Values run(const Reduce&, const Call&);
Values run(const ArgExtreme&, const Call&);
Values run(const TopK&, const Call&);
Values run(const ConstantOfShape&, const Call&);
Values run(const ShapeOf&, const Call&);
Values run(const Range&, const Call&);
Values run(const Identity&, const Call&);
Values run(const Dropout&, const Call&);

}  // namespace fleetfit::graph::interpreter
