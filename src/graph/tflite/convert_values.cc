// Operators that compute element by element, choose among elements or make up tensors.

#include "graph/tflite/conversion.h"
#include "graph/tflite/tensors.h"

namespace fleetfit::graph::tflite {
namespace {

constexpr std::string_view kUnknownType = "the type of its result is not known";

template <class Options>
Result<Converted> arithmetic(Conversion& c, ElementwiseKind kind) {
  const auto activation = fused(c.options<Options>());
  if (!activation) return not_known(std::string(kUnknownActivation));
  return Converted{.op = Elementwise{kind}, .inputs = c.inputs, .activation = *activation};
}

Result<Converted> arg_extreme(Conversion& c, bool smallest, file::TensorType output_type) {
  const auto axis = c.integer(1);
  if (!axis) return not_known("its axis is not constant");
  return Converted{.op = ArgExtreme{.smallest = smallest,
                                    .axis = *axis,
                                    .keep_dims = false,
                                    .index_type = dtype_of(output_type)},
                   .inputs = {c.input(0)}};
}

/// A tensor between two nodes that one operator of the file becomes.
Tensor between(const Conversion& c, DType dtype) {
  return {.dtype = dtype, .shape = c.graph.tensor(c.outputs[0]).shape};
}

DType input_type(const Conversion& c, std::size_t i) { return c.graph.tensor(c.input(i)).dtype; }

}  // namespace

Result<Converted> convert_leaky_relu(Conversion& c) {
  const auto* options = c.options<file::LeakyReluOptions>();
  const float alpha = options == nullptr ? 0 : options->alpha();
  return Converted{.op = Activate{{ActivationKind::leaky_relu, alpha}}, .inputs = c.inputs};
}

Result<Converted> convert_gelu(Conversion& c) {
  const auto* options = c.options<file::GeluOptions>();
  const bool approximate = options != nullptr && options->approximate();
  const auto kind = approximate ? ActivationKind::gelu_tanh : ActivationKind::gelu;
  return Converted{.op = Activate{{kind}}, .inputs = c.inputs};
}

Result<Converted> convert_prelu(Conversion& c) {
  return Converted{.op = PRelu{}, .inputs = c.inputs};
}

Result<Converted> convert_add(Conversion& c) {
  return arithmetic<file::AddOptions>(c, ElementwiseKind::add);
}

Result<Converted> convert_sub(Conversion& c) {
  return arithmetic<file::SubOptions>(c, ElementwiseKind::sub);
}

Result<Converted> convert_mul(Conversion& c) {
  return arithmetic<file::MulOptions>(c, ElementwiseKind::mul);
}

Result<Converted> convert_div(Conversion& c) {
  return arithmetic<file::DivOptions>(c, ElementwiseKind::div);
}

Result<Converted> convert_not_equal(Conversion& c) {
  const auto equal = c.add_before(Elementwise{ElementwiseKind::equal}, c.inputs, "equal",
                                  between(c, DType::boolean));
  return Converted{.op = Unary{UnaryKind::logical_not}, .inputs = {equal}};
}

Result<Converted> convert_floor_div(Conversion& c) {
  const auto type = input_type(c, 0);
  if (!is_float(type)) return not_known("it divides whole numbers");
  const auto quotient =
      c.add_before(Elementwise{ElementwiseKind::div}, c.inputs, "div", between(c, type));
  return Converted{.op = Unary{UnaryKind::floor}, .inputs = {quotient}};
}

Result<Converted> convert_floor_mod(Conversion& c) {
  if (is_float(input_type(c, 0))) return not_known("it divides fractions");
  return Converted{.op = Elementwise{ElementwiseKind::mod}, .inputs = c.inputs};
}

Result<Converted> convert_select(Conversion& c) {
  // A condition of one dimension chooses whole rows here, which is no broadcasting of the graph's.
  const auto* condition = c.shape(0);
  const auto* values = c.shape(1);
  if (condition == nullptr || values == nullptr)
    return not_known("the shape of its condition is not known");
  if (condition->size() == 1 && values->size() > 1) return not_known("it chooses whole rows");
  return convert_select_v2(c);
}

Result<Converted> convert_select_v2(Conversion& c) {
  return Converted{.op = Where{}, .inputs = c.inputs};
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
  if (input_type(c, 0) == DType::f16) return Converted{.op = Cast{DType::f32}, .inputs = c.inputs};
  return convert_quantize(c);
}

Result<Converted> convert_arg_max(Conversion& c) {
  const auto* options = c.options<file::ArgMaxOptions>();
  return arg_extreme(c, /*smallest=*/false,
                     options == nullptr ? file::TensorType::INT64 : options->output_type());
}

Result<Converted> convert_arg_min(Conversion& c) {
  const auto* options = c.options<file::ArgMinOptions>();
  return arg_extreme(c, /*smallest=*/true,
                     options == nullptr ? file::TensorType::INT64 : options->output_type());
}

Result<Converted> convert_topk_v2(Conversion& c) {
  const auto k = c.integer(1);
  return Converted{.op = TopK{.axis = -1},
                   .inputs = {c.input(0), k ? c.add_ints("k", {*k}) : c.input(1)}};
}

Result<Converted> convert_shape(Conversion& c) {
  const auto* options = c.options<file::ShapeOptions>();
  const bool wide = options != nullptr && options->out_type() == file::TensorType::INT64;
  return Converted{.op = ShapeOf{.index_type = wide ? DType::i64 : DType::i32}, .inputs = c.inputs};
}

Result<Converted> convert_range(Conversion& c) {
  return Converted{.op = Range{}, .inputs = c.inputs};
}

Result<Converted> convert_fill(Conversion& c) {
  const auto* shape = c.shape(1);
  const bool is_scalar = shape != nullptr && elements(*shape) == 1;
  const auto value = is_scalar ? constant_numbers(c.graph, c.input(1)) : std::nullopt;
  if (!value) return not_known("its value is not constant");
  return Converted{.op = ConstantOfShape{.dtype = input_type(c, 1), .value = value->front()},
                   .inputs = {c.input(0)}};
}

}  // namespace fleetfit::graph::tflite
