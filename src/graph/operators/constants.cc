#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "graph/infer_node.h"
#include "graph/onnx/onnx_constants.h"
#include "graph/operators/family.h"

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

namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace tflite;

Outcomes infer(const Constant&, const Operands&) { return std::vector<Outcome>(1); }

Outcomes infer(const ConstantOfShape& op, const Operands& in) { return one(op.dtype, in.ints(0)); }

Outcomes infer(const ShapeOf& op, const Operands& in) {
  if (in.shape(0) == nullptr) return open(op.index_type);
  return one(op.index_type, Shape{std::ssize(extents_of(op, *in.shape(0)))});
}

Outcomes infer(const Range&, const Operands& in) {
  const auto start = in.numbers(0);
  const auto limit = in.numbers(1);
  const auto delta = in.numbers(2);
  if (!start || !limit || !delta) return open(in.dtype(0));
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1 || delta->front() == 0)
    return misfit("bounds are no numbers");
  const auto count = std::ceil((limit->front() - start->front()) / delta->front());
  if (!(count < 0x1p40)) return misfit("a range of {} elements", count);
  return one(in.dtype(0), Shape{static_cast<std::int64_t>(std::max(0.0, count))});
}

void link(const ShapeOf&, ChannelLinks& links) { links.pin_all(links.out()); }

Values run(const ConstantOfShape& op, const Call& call) {
  return one(write(call.result(), std::vector<double>(elements(call.result().shape), op.value)));
}

Values run(const ShapeOf& op, const Call& call) {
  return one(write(call.result(), extents_of(op, call.input(0).shape)));
}

Values run(const Range&, const Call& call) {
  const auto count = call.result().shape[0];
  if (is_float(call.result().dtype)) {
    const auto start = read<double>(call.input(0));
    const auto delta = read<double>(call.input(2));
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) {
      numbers.push_back(start[0] + static_cast<double>(i) * delta[0]);
    }
    return one(write(call.result(), numbers));
  }
  const auto start = read<std::uint64_t>(call.input(0));
  const auto delta = read<std::uint64_t>(call.input(2));
  std::vector<std::uint64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(start[0] + i * delta[0]);
  return one(write(call.result(), numbers));
}

Result<Operator> read_onnx(const ConstantOfShape& op, NodeReader& reader) {
  const auto* value = reader.attribute("value");
  if (value == nullptr || !value->t) return op;
  FLEETFIT_ASSIGN(auto tensor, ConstantReader(nullptr, {}).read(*value->t));
  const auto size = size_of(tensor.dtype);
  if (tensor.data->size_bytes() != size) return bad_attribute("value");
  Graph scratch;
  const auto id = scratch.add_tensor(tensor);
  if (const auto numbers = constant_numbers(scratch, id))
    return ConstantOfShape{tensor.dtype, numbers->front()};
  return unknown(reader, fmt::format("filling with {}", to_string(tensor.dtype)));
}

void write_onnx(const ConstantOfShape& op, NodeWriter& out) {
  const Recipe one{
      .dtype = op.dtype == DType::boolean ? DType::u8 : op.dtype, .count = 1, .center = op.value};
  out.set("value", Tensor{.dtype = op.dtype, .shape = Shape{1}, .data = TensorData::generate(one)});
}

Status lower_onnx(const ShapeOf& op, Node& node, Lowering& out) {
  return out.keep_with_index_type(op, std::move(node));
}

Result<Converted> convert_shape(Conversion& c) {
  const auto options = c.options("ShapeOptions");
  const bool wide = options && options.type("out_type") == DType::i64;
  return Converted{.op = ShapeOf{.index_type = wide ? DType::i64 : DType::i32}, .inputs = c.inputs};
}

Result<Converted> convert_fill(Conversion& c) {
  const auto* shape = c.shape(1);
  const bool is_scalar = shape != nullptr && elements(*shape) == 1;
  const auto value = is_scalar ? constant_numbers(c.graph, c.input(1)) : std::nullopt;
  if (!value) return not_known("its value is not constant");
  return Converted{.op = ConstantOfShape{.dtype = c.type(1), .value = value->front()},
                   .inputs = {c.input(0)}};
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Constant>({.number = 46, .name = "Constant", .arity = {0, 0}, .outside_onnx = true}),
    describe<ConstantOfShape>({.number = 47, .name = "ConstantOfShape", .onnx_counts = {0}}),
    describe<ShapeOf>(
        {.number = 48,
         .name = "Shape",
         .onnx = {attribute<&ShapeOf::start>("start").if_set(), attribute<&ShapeOf::end>("end")}}),
    describe<Range>({.number = 49, .name = "Range", .arity = {3, 3}}),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"SHAPE", convert_shape},
    {"RANGE", convert_plain<Range>, {3, 3}},
    {"FILL", convert_fill, {2, 2}},
});

}  // namespace

OperatorFamily constants_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
