#pragma once

#include <span>
#include <vector>

#include "graph/evaluate/values.h"

/// What reference computations share. Operands were checked by infer_node before, so that their
/// shapes fit; their values were not.
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

// The reference computations that fill a file of their own; the others stand in their operators'
// files.
Values run(const Conv& op, const Call& call);
Values run(const ConvTranspose& op, const Call& call);
Values run(const Gemm& op, const Call& call);
Values run(const MatMul& op, const Call& call);
Values run(const MultiHeadAttention& op, const Call& call);
Values run(const Unary& op, const Call& call);
Values run(const Elementwise& op, const Call& call);
Values run(const Reduce& op, const Call& call);
Values run(const ArgExtreme& op, const Call& call);
Values run(const TopK& op, const Call& call);

/// The function's value at `x`.
double apply(const Activation& activation, double x);

/// The function on every element; whole numbers stay whole numbers.
Value activate(const Value& x, const Activation& activation);

/// The real numbers, in float32, that the elements stand for by the value's quantization.
Result<Value> dequantized(const Value& stored);

/// Whole numbers of `type` that stand for the given real ones: to the nearest, ties to even,
/// and to the type's bounds beyond them. The result has the quantization.
Result<Value> quantized(const Value& reals, DType type, const Quantization& quantization);

}  // namespace fleetfit::graph::interpreter
