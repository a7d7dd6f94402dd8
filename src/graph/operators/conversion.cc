#include <array>
#include <cmath>

#include "graph/onnx/onnx_constants.h"
#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

Outcomes infer(const Cast& op, const Operands& in) { return first_shape_as(op.to, in); }

Outcomes infer(const Requantize& op, const Operands& in) { return first_shape_as(op.to, in); }

Outcomes infer(const QuantizeLinear&, const Operands& in) {
  return first_shape_as(in.has(2) ? in.dtype(2) : DType::u8, in);
}

Outcomes infer(const DequantizeLinear&, const Operands& in) {
  return first_shape_as(DType::f32, in);
}

bool hands_on(const Cast& op, const Graph& graph, const Node& node) {
  return graph.tensor(node.inputs.front()).dtype == op.to;
}

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

Result<Value> interpreter::dequantized(const Value& stored) {
  FLEETFIT_ASSIGN(const auto s, scaling(stored.shape, *stored.quantization));
  return to_real(stored, s, DType::f32);
}

Result<Value> interpreter::quantized(const Value& reals, DType type,
                                     const Quantization& quantization) {
  FLEETFIT_ASSIGN(const auto s, scaling(reals.shape, quantization));
  auto stored = to_stored(reals, s, type);
  stored.quantization = quantization;
  return stored;
}

namespace {

Values run(const QuantizeLinear& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto s, scaling(call, op.axis));
  return one(to_stored(call.input(0), s, call.result().dtype));
}

Values run(const DequantizeLinear& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto s, scaling(call, op.axis));
  return one(to_real(call.input(0), s, call.result().dtype));
}

Values run(const Cast& op, const Call& call) { return one(converted(call.input(0), op.to)); }

Values run(const Requantize&, const Call& call) { return one(call.input(0)); }

Status lower_onnx(const Requantize& op, Node& node, Lowering& out) {
  const bool cast = out.tensor(node.inputs[0]).dtype != op.to && op.to == DType::f32;
  if (cast) {
    node.op = Cast{DType::f32};
  } else {
    node.op = Identity{};
  }
  return out.keep(std::move(node));
}

Result<Converted> convert_cast(Conversion& c) {
  const auto to = c.graph.tensor(c.outputs[0]).dtype;
  if (size_of(to) == 0) return not_known(std::string(kUnknownType));
  return Converted{.op = Cast{to}, .inputs = c.inputs};
}

Result<Converted> convert_quantize(Conversion& c) {
  const auto to = c.graph.tensor(c.outputs[0]).dtype;
  if (size_of(to) == 0) return not_known(std::string(kUnknownType));
  return Converted{.op = Requantize{to}, .inputs = c.inputs};
}

Result<Converted> convert_dequantize(Conversion& c) {
  if (c.type(0) == DType::f16) return Converted{.op = Cast{DType::f32}, .inputs = c.inputs};
  return convert_quantize(c);
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Cast>(elementwise(
        {.number = 19,
         .name = "Cast",
         .onnx = {attribute<&Cast::to>("to").refused("a cast to a type that is not supported")}})),
    describe<QuantizeLinear>({.number = 20,
                              .name = "QuantizeLinear",
                              .arity = {2, 3},
                              .follow = rule<follow_axis<QuantizeLinear>>,
                              .kernel_kind = "quantize",
                              .onnx = {attribute<&QuantizeLinear::axis>("axis")}}),
    describe<DequantizeLinear>({.number = 21,
                                .name = "DequantizeLinear",
                                .arity = {2, 3},
                                .follow = rule<follow_axis<DequantizeLinear>>,
                                .kernel_kind = "quantize",
                                .onnx = {attribute<&DequantizeLinear::axis>("axis")}}),
    describe<Requantize>({.number = 22,
                          .name = "Requantize",
                          .follow = follow_unchanged,
                          .kernel_kind = "quantize",
                          .outside_onnx = true}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"CAST", convert_cast},
    {"QUANTIZE", convert_quantize},
    {"DEQUANTIZE", convert_dequantize},
});

}  // namespace

OperatorFamily conversion_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
