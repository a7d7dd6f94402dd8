#include <fmt/format.h>

#include <array>
#include <cmath>

#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

// In the order of their enums, what ONNX lacks at the end.
constexpr std::array<std::string_view, 16> kUnaryNames = {
    "Abs",   "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Floor",  "Ceil",
    "Round", "Erf", "Sin", "Cos", "Sign", "Not",        "Square", "Rsqrt"};
constexpr std::size_t kUnariesOfOnnx = 14;
constexpr auto kElementwiseNames = std::to_array<std::string_view>(
    {"Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Sum", "Mean", "Equal", "Greater",
     "Less", "GreaterOrEqual", "LessOrEqual", "And", "Or", "Xor", "SquaredDifference"});
constexpr std::size_t kElementwiseOfOnnx = 18;

Outcomes infer(const Elementwise& op, const Operands& in) {
  const bool compares =
      op.kind >= ElementwiseKind::equal && op.kind <= ElementwiseKind::logical_xor;
  const auto dtype = compares ? DType::boolean : in.dtype(0);
  Shape shape;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in.shape(i) == nullptr) return open(dtype);
    FLEETFIT_ASSIGN(auto sum, broadcast(shape, *in.shape(i)));
    shape = std::move(sum);
  }
  return one(dtype, shape);
}

Outcomes infer(const IsNaN&, const Operands& in) { return first_shape_as(DType::boolean, in); }

bool takes_any_number(ElementwiseKind kind) {
  return kind == ElementwiseKind::min || kind == ElementwiseKind::max ||
         kind == ElementwiseKind::sum || kind == ElementwiseKind::mean;
}

Arity arity_of(const Elementwise& op) {
  return takes_any_number(op.kind) ? Arity{1, kAnyNumber} : Arity{2, 2};
}

bool hands_on(const Elementwise& op, const Graph&, const Node& node) {
  return takes_any_number(op.kind) && node.inputs.size() == 1;
}

quantization::Role role_of(const Elementwise& op, const Graph&, const Node&) {
  const bool known = op.kind == ElementwiseKind::add || op.kind == ElementwiseKind::mul;
  return known ? quantization::Role::computes : quantization::Role::floats;
}

Price price_of(const Unary& op) {
  switch (op.kind) {
    case UnaryKind::exp:
    case UnaryKind::log:
    case UnaryKind::erf:
    case UnaryKind::sin:
    case UnaryKind::cos:
      return Price::costly;
    default:
      return Price::cheap;
  }
}

Values run(const IsNaN&, const Call& call) {
  std::vector<std::int64_t> truths;
  for (const auto x : read<double>(call.input(0))) truths.push_back(std::isnan(x) ? 1 : 0);
  return one(write(call.result(), truths));
}

/// Before opset 7 the second operand could be aligned to an axis of the first: its shape gets ones
/// behind.
Status align_second(NodeReader& reader) {
  const auto axis = reader.integer("axis", -1);
  if (reader.integer("broadcast", 0) == 0 || axis < 0) return {};
  const auto& a =
      reader.has_input(0) ? reader.graph().tensor(reader.input(0)).shape : std::optional<Shape>();
  auto b = reader.has_input(1) ? std::optional<Tensor>(reader.graph().tensor(reader.input(1)))
                               : std::nullopt;
  if (!b || !b->shape || !b->data)
    return fail(ErrorCode::unsupported, "broadcasting along an axis of a computed tensor");
  // The first operand's rank is rarely known yet; images have four dimensions.
  const auto rank = static_cast<std::int64_t>(a ? a->size() : 4);
  const auto behind = rank - axis - static_cast<std::int64_t>(b->shape->size());
  if (behind < 0 || behind > 16) return bad_attribute("axis");
  b->shape->insert(b->shape->end(), static_cast<std::size_t>(behind), 1);
  b->name = fmt::format("{}.aligned", reader.node().name);
  reader.node().inputs[1] = reader.graph().add_tensor(std::move(*b));
  return {};
}

Result<Operator> read_onnx(const Elementwise& op, NodeReader& reader) {
  if (reader.opset() < 7) {
    FLEETFIT_TRY(align_second(reader));
  }
  if (op.kind == ElementwiseKind::mod && reader.integer("fmod", 0) != 0)
    return unknown(reader, "fmod");
  return op;
}

Status lower_onnx(const Unary& op, Node& node, Lowering& out) {
  const auto x = node.inputs[0];
  if (op.kind == UnaryKind::square) {
    out.emit(node, "square", Elementwise{ElementwiseKind::mul}, {x, x}, node.outputs[0]);
  } else if (op.kind == UnaryKind::rsqrt) {
    out.emit(node, "rsqrt", Unary{UnaryKind::reciprocal},
             {out.step(node, "sqrt", Unary{UnaryKind::sqrt}, {x})}, node.outputs[0]);
  } else {
    return out.keep(std::move(node));
  }
  return {};
}

Status lower_onnx(const Elementwise& op, Node& node, Lowering& out) {
  if (op.kind != ElementwiseKind::squared_difference) return out.keep(std::move(node));
  const auto difference =
      out.step(node, "difference", Elementwise{ElementwiseKind::sub}, node.inputs);
  out.emit(node, "square", Elementwise{ElementwiseKind::mul}, {difference, difference},
           node.outputs[0]);
  return {};
}

template <UnaryKind kind>
Result<Converted> convert_unary(Conversion& c) {
  return Converted{.op = Unary{kind}, .inputs = c.inputs};
}

template <ElementwiseKind kind>
Result<Converted> convert_elementwise(Conversion& c) {
  return Converted{.op = Elementwise{kind}, .inputs = c.inputs};
}

/// The options of the four basic ones, which are named after them, hold nothing but an activation.
template <ElementwiseKind kind>
Result<Converted> convert_arithmetic(Conversion& c) {
  const auto name = kElementwiseNames[static_cast<std::size_t>(kind)];
  const auto activation = fused(c.options(fmt::format("{}Options", name)));
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{.op = Elementwise{kind}, .inputs = c.inputs, .activation = *activation};
}

/// A tensor between two nodes that one operator of the file becomes.
Tensor between(const Conversion& c, DType dtype) {
  return {.dtype = dtype, .shape = c.graph.tensor(c.outputs[0]).shape};
}

Result<Converted> convert_not_equal(Conversion& c) {
  const auto equal = c.add_before(Elementwise{ElementwiseKind::equal}, c.inputs, "equal",
                                  between(c, DType::boolean));
  return Converted{.op = Unary{UnaryKind::logical_not}, .inputs = {equal}};
}

Result<Converted> convert_floor_div(Conversion& c) {
  const auto type = c.type(0);
  if (!is_float(type)) return not_known("it divides whole numbers");
  const auto quotient =
      c.add_before(Elementwise{ElementwiseKind::div}, c.inputs, "div", between(c, type));
  return Converted{.op = Unary{UnaryKind::floor}, .inputs = {quotient}};
}

Result<Converted> convert_floor_mod(Conversion& c) {
  if (is_float(c.type(0))) return not_known("it divides fractions");
  return Converted{.op = Elementwise{ElementwiseKind::mod}, .inputs = c.inputs};
}

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Unary>(
        elementwise({.number = 16, .kinds = names_by<&Unary::kind>(kUnaryNames, kUnariesOfOnnx)})),
    describe<Elementwise>(broadcast_elementwise(
        {.number = 17,
         .kinds = names_by<&Elementwise::kind>(kElementwiseNames, kElementwiseOfOnnx),
         .trained = InputSet::all(),
         .takes_any_factor = true})),
    describe<IsNaN>(elementwise({.number = 52, .name = "IsNaN", .price = Price::cheap})),
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"ADD", convert_arithmetic<ElementwiseKind::add>, {2, 2}},
    {"SUB", convert_arithmetic<ElementwiseKind::sub>, {2, 2}},
    {"MUL", convert_arithmetic<ElementwiseKind::mul>, {2, 2}},
    {"DIV", convert_arithmetic<ElementwiseKind::div>, {2, 2}},
    {"ADD_N", convert_elementwise<ElementwiseKind::sum>, {1, kAnyNumber}},
    {"POW", convert_elementwise<ElementwiseKind::pow>, {2, 2}},
    {"MINIMUM", convert_elementwise<ElementwiseKind::min>, {2, 2}},
    {"MAXIMUM", convert_elementwise<ElementwiseKind::max>, {2, 2}},
    {"SQUARED_DIFFERENCE", convert_elementwise<ElementwiseKind::squared_difference>, {2, 2}},
    {"EQUAL", convert_elementwise<ElementwiseKind::equal>, {2, 2}},
    {"NOT_EQUAL", convert_not_equal, {2, 2}},
    {"GREATER", convert_elementwise<ElementwiseKind::greater>, {2, 2}},
    {"GREATER_EQUAL", convert_elementwise<ElementwiseKind::greater_or_equal>, {2, 2}},
    {"LESS", convert_elementwise<ElementwiseKind::less>, {2, 2}},
    {"LESS_EQUAL", convert_elementwise<ElementwiseKind::less_or_equal>, {2, 2}},
    {"LOGICAL_AND", convert_elementwise<ElementwiseKind::logical_and>, {2, 2}},
    {"LOGICAL_OR", convert_elementwise<ElementwiseKind::logical_or>, {2, 2}},
    {"FLOOR_DIV", convert_floor_div, {2, 2}},
    {"FLOOR_MOD", convert_floor_mod, {2, 2}},
    {"ABS", convert_unary<UnaryKind::abs>},
    {"NEG", convert_unary<UnaryKind::neg>},
    {"EXP", convert_unary<UnaryKind::exp>},
    {"LOG", convert_unary<UnaryKind::log>},
    {"SQRT", convert_unary<UnaryKind::sqrt>},
    {"RSQRT", convert_unary<UnaryKind::rsqrt>},
    {"SQUARE", convert_unary<UnaryKind::square>},
    {"FLOOR", convert_unary<UnaryKind::floor>},
    {"CEIL", convert_unary<UnaryKind::ceil>},
    {"ROUND", convert_unary<UnaryKind::round>},
    {"SIN", convert_unary<UnaryKind::sin>},
    {"COS", convert_unary<UnaryKind::cos>},
    {"SIGN", convert_unary<UnaryKind::sign>},
    {"LOGICAL_NOT", convert_unary<UnaryKind::logical_not>},
});

}  // namespace

OperatorFamily elementwise_family() { return {.operators = kOperators, .tflite = kTflite}; }

}  // namespace fleetfit::graph
