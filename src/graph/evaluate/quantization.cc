#include "graph/evaluate/quantization.h"

#include <algorithm>
#include <cmath>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// Scale and zero point for each element: those of number element / inner % count.
struct Scaling {
  std::vector<float> scales;
  std::vector<std::int64_t> zero_points;
  std::int64_t inner = 1;

  std::size_t index(std::size_t element) const { return element / inner % scales.size(); }
};

/// One scale, or one for each index along the axis.
Result<Scaling> scaling(const Shape& shape, std::vector<float> scales,
                        std::vector<std::int64_t> zero_points, std::int64_t axis) {
  if (zero_points.empty()) zero_points.resize(scales.size(), 0);
  if (scales.empty() || scales.size() != zero_points.size()) {
    return misfit("{} scales and {} zero points", scales.size(), zero_points.size());
  }
  if (scales.size() == 1) return Scaling{std::move(scales), std::move(zero_points)};
  FLEETFIT_ASSIGN(const auto position, resolve_axis(axis, shape.size()));
  if (shape[position] != std::ssize(scales)) {
    return misfit("{} scales for an axis of {}", scales.size(), shape[position]);
  }
  const auto inner =
      elements(Shape(shape.begin() + static_cast<std::ptrdiff_t>(position) + 1, shape.end()));
  return Scaling{std::move(scales), std::move(zero_points), inner};
}

Result<Scaling> scaling(const Shape& shape, const Quantization& q) {
  return scaling(shape, q.scales, {q.zero_points.begin(), q.zero_points.end()}, q.axis.value_or(0));
}

Result<Scaling> scaling(const Call& call, std::int64_t axis) {
  std::vector<std::int64_t> zero_points;
  if (call.optional(2) != nullptr) zero_points = read<std::int64_t>(call.input(2));
  return scaling(call.input(0).shape, read<float>(call.input(1)), std::move(zero_points), axis);
}

Value to_real(const Value& stored, const Scaling& s, DType type) {
  const auto numbers = read<double>(stored);
  std::vector<float> reals(numbers.size());
  for (std::size_t i = 0; i < reals.size(); ++i) {
    const auto k = s.index(i);
    reals[i] = static_cast<float>(numbers[i] - static_cast<double>(s.zero_points[k])) * s.scales[k];
  }
  return write(Form{type, stored.shape}, reals);
}

Value to_stored(const Value& reals, const Scaling& s, DType type) {
  const auto numbers = read<float>(reals);
  std::vector<double> stored(numbers.size());
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto k = s.index(i);
    // Runtimes divide floats; a double could tip a tie the other way. Writing saturates.
    stored[i] = std::nearbyint(numbers[i] / s.scales[k]) + static_cast<double>(s.zero_points[k]);
  }
  return write(Form{type, reals.shape}, stored);
}

}  // namespace

Result<Value> dequantized(const Value& stored) {
  FLEETFIT_ASSIGN(const auto s, scaling(stored.shape, *stored.quantization));
  return to_real(stored, s, DType::f32);
}

Result<Value> quantized(const Value& reals, DType type, const Quantization& quantization) {
  FLEETFIT_ASSIGN(const auto s, scaling(reals.shape, quantization));
  auto stored = to_stored(reals, s, type);
  stored.quantization = quantization;
  return stored;
}

Values run(const QuantizeLinear& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto s, scaling(call, op.axis));
  return one(to_stored(call.input(0), s, call.result().dtype));
}

Values run(const DequantizeLinear& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto s, scaling(call, op.axis));
  return one(to_real(call.input(0), s, call.result().dtype));
}

}  // namespace fleetfit::graph::interpreter
