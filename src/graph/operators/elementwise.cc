#include <fmt/format.h>

#include <array>
#include <cmath>

#include "graph/channel_links.h"
#include "graph/evaluate/kernels.h"
#include "graph/evaluate/references.h"
#include "graph/onnx/lowering.h"
#include "graph/onnx/onnx_node.h"
#include "graph/operands.h"
#include "graph/operators/names.h"
#include "graph/operators/traits.h"
#include "graph/passes/layout_adaptation.h"
#include "graph/tflite/conversion.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

constexpr std::array<std::string_view, 16> kUnaryNames = {
    "Abs",   "Neg", "Exp", "Log", "Sqrt", "Reciprocal", "Floor",  "Ceil",
    "Round", "Erf", "Sin", "Cos", "Sign", "Not",        "Square", "Rsqrt"};
constexpr std::array<std::string_view, 19> kElementwiseNames = {"Add",
                                                                "Sub",
                                                                "Mul",
                                                                "Div",
                                                                "Pow",
                                                                "Mod",
                                                                "Min",
                                                                "Max",
                                                                "Sum",
                                                                "Mean",
                                                                "Equal",
                                                                "Greater",
                                                                "Less",
                                                                "GreaterOrEqual",
                                                                "LessOrEqual",
                                                                "And",
                                                                "Or",
                                                                "Xor",
                                                                "SquaredDifference"};

Outcomes infer_elementwise(const Elementwise& op, const Node&, const Operands& in) {
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

Outcomes infer_is_nan(const IsNaN&, const Node&, const Operands& in) {
  return first_shape_as(DType::boolean, in);
}

std::string_view unary_name(const Unary& op) { return name_of_kind(kUnaryNames, op.kind); }

std::string_view elementwise_name(const Elementwise& op) {
  return name_of_kind(kElementwiseNames, op.kind);
}

bool takes_any_number(ElementwiseKind kind) {
  return kind == ElementwiseKind::min || kind == ElementwiseKind::max ||
         kind == ElementwiseKind::sum || kind == ElementwiseKind::mean;
}

Arity elementwise_arity(const Elementwise& op) {
  return takes_any_number(op.kind) ? Arity{1, kAnyNumber} : Arity{2, 2};
}

bool hands_on_elementwise(const Elementwise& op, const Graph&, const Node& node) {
  return takes_any_number(op.kind) && node.inputs.size() == 1;
}

quantization::Role role_of_elementwise(const Elementwise& op, const Graph&, const Node&) {
  const bool known = op.kind == ElementwiseKind::add || op.kind == ElementwiseKind::mul;
  return known ? quantization::Role::computes : quantization::Role::floats;
}

Price unary_price(const Unary& op) {
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

Values run_is_nan(const IsNaN&, const Call& call) {
  std::vector<std::int64_t> truths;
  for (const auto x : read<double>(call.input(0))) truths.push_back(std::isnan(x) ? 1 : 0);
  return one(write(call.result(), truths));
}

Result<Operator> convert_unary(NodeReader& reader) {
  return Unary{kind_of_name<UnaryKind>(kUnaryNames, reader.type())};
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

Result<Operator> convert_elementwise(NodeReader& reader) {
  if (reader.opset() < 7) {
    FLEETFIT_TRY(align_second(reader));
  }
  const auto kind = kind_of_name<ElementwiseKind>(kElementwiseNames, reader.type());
  if (kind == ElementwiseKind::mod && reader.integer("fmod", 0) != 0)
    return unknown(reader, "fmod");
  return Elementwise{kind};
}

Status lower_unary(const Unary& op, Node& node, Lowering& out) {
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

Status lower_elementwise(const Elementwise& op, Node& node, Lowering& out) {
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

/// The options of the four basic ones hold nothing but an activation.
Result<Converted> arithmetic(Conversion& c, ElementwiseKind kind, std::string_view options) {
  const auto activation = fused(c.options(options));
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{.op = Elementwise{kind}, .inputs = c.inputs, .activation = *activation};
}

Result<Converted> convert_add(Conversion& c) {
  return arithmetic(c, ElementwiseKind::add, "AddOptions");
}

Result<Converted> convert_sub(Conversion& c) {
  return arithmetic(c, ElementwiseKind::sub, "SubOptions");
}

Result<Converted> convert_mul(Conversion& c) {
  return arithmetic(c, ElementwiseKind::mul, "MulOptions");
}

Result<Converted> convert_div(Conversion& c) {
  return arithmetic(c, ElementwiseKind::div, "DivOptions");
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
    describe<Unary>({.number = 16,
                     .name_of = rule<unary_name>,
                     .infer = infer_like_first,
                     .run = rule<run_unary>,
                     .link = linked<&ChannelLinks::keep_shape>,
                     .follow = follow_unchanged,
                     .kernel_kind = "elementwise",
                     .price_of = rule<unary_price>,
                     .lower_onnx = rule<lower_unary>}),
    describe<Elementwise>({.number = 17,
                           .name_of = rule<elementwise_name>,
                           .arity_of = rule<elementwise_arity>,
                           .infer = rule<infer_elementwise>,
                           .run = rule<run_elementwise>,
                           .hands_on = rule<hands_on_elementwise>,
                           .link = linked<&ChannelLinks::broadcast_all>,
                           .data_inputs = DataInputs::broadcast,
                           .follow = follow_unchanged,
                           .quantized_of = rule<role_of_elementwise>,
                           .trained = InputSet::all(),
                           .takes_any_factor = true,
                           .kernel_kind = "elementwise",
                           .lower_onnx = rule<lower_elementwise>}),
    describe<IsNaN>({.number = 52,
                     .name = "IsNaN",
                     .infer = rule<infer_is_nan>,
                     .run = rule<run_is_nan>,
                     .link = linked<&ChannelLinks::keep_shape>,
                     .follow = follow_unchanged,
                     .kernel_kind = "elementwise",
                     .price = Price::cheap}),
});

constexpr auto kOnnx = std::to_array<OnnxReader>({
    {"IsNaN", convert_plain<IsNaN>},
    {"Abs", convert_unary},
    {"Neg", convert_unary},
    {"Exp", convert_unary},
    {"Log", convert_unary},
    {"Sqrt", convert_unary},
    {"Reciprocal", convert_unary},
    {"Floor", convert_unary},
    {"Ceil", convert_unary},
    {"Round", convert_unary},
    {"Erf", convert_unary},
    {"Sin", convert_unary},
    {"Cos", convert_unary},
    {"Sign", convert_unary},
    {"Not", convert_unary},
    {"Add", convert_elementwise},
    {"Sub", convert_elementwise},
    {"Mul", convert_elementwise},
    {"Div", convert_elementwise},
    {"Pow", convert_elementwise},
    {"Mod", convert_elementwise},
    {"Min", convert_elementwise},
    {"Max", convert_elementwise},
    {"Sum", convert_elementwise},
    {"Mean", convert_elementwise},
    {"Equal", convert_elementwise},
    {"Greater", convert_elementwise},
    {"Less", convert_elementwise},
    {"GreaterOrEqual", convert_elementwise},
    {"LessOrEqual", convert_elementwise},
    {"And", convert_elementwise},
    {"Or", convert_elementwise},
    {"Xor", convert_elementwise},
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"ADD", convert_add, {2, 2}},
    {"SUB", convert_sub, {2, 2}},
    {"MUL", convert_mul, {2, 2}},
    {"DIV", convert_div, {2, 2}},
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

OperatorFamily elementwise_family() {
  return {.operators = kOperators, .onnx = kOnnx, .tflite = kTflite};
}

}  // namespace fleetfit::graph
