// From ONNX nodes to operators: what opsets 7 to 17 wrote differently is brought to the form of
// opset 17.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "graph/onnx/onnx_constants.h"
#include "graph/onnx/onnx_node.h"

namespace fleetfit::graph::onnx_format {
namespace {

using Converter = Result<Operator> (*)(NodeReader&);

Operator unknown(const NodeReader& reader, std::string reason) {
  return Unknown{.domain = {},
                 .type = std::string(reader.type()),
                 .attributes = {},
                 .reason = std::move(reason)};
}

tl::unexpected<Error> bad_attribute(std::string_view name) {
  return fail(ErrorCode::invalid_input, fmt::format("attribute {} has no valid value", name));
}

// --- Windows ---

Result<AutoPad> auto_pad(const NodeReader& reader) {
  const auto text = reader.text("auto_pad", "NOTSET");
  if (text == "NOTSET") return AutoPad::explicit_pads;
  if (text == "SAME_UPPER") return AutoPad::same_upper;
  if (text == "SAME_LOWER") return AutoPad::same_lower;
  if (text == "VALID") return AutoPad::valid;
  return bad_attribute("auto_pad");
}

/// An attribute with one entry for each spatial dimension, or with `times` for each.
Result<Ints> per_dimension(const NodeReader& reader, std::string_view name, std::size_t spatial,
                           std::int64_t fallback, std::size_t times = 1) {
  if (!reader.has(name)) return Ints(spatial * times, fallback);
  auto values = reader.ints(name);
  if (values.size() != spatial * times) return bad_attribute(name);
  return values;
}

Result<Window> window(const NodeReader& reader, Ints kernel) {
  const auto spatial = kernel.size();
  Window result{.kernel = std::move(kernel)};
  FLEETFIT_ASSIGN(result.auto_pad, auto_pad(reader));
  auto strides = per_dimension(reader, "strides", spatial, 1);
  auto dilations = per_dimension(reader, "dilations", spatial, 1);
  auto pads = per_dimension(reader, "pads", spatial, 0, 2);
  FLEETFIT_TRY(strides);
  FLEETFIT_TRY(dilations);
  FLEETFIT_TRY(pads);
  result.strides = std::move(*strides);
  result.dilations = std::move(*dilations);
  if (result.auto_pad != AutoPad::explicit_pads) pads->assign(2 * spatial, 0);
  result.pads_begin.assign(pads->begin(), pads->begin() + static_cast<std::ptrdiff_t>(spatial));
  result.pads_end.assign(pads->begin() + static_cast<std::ptrdiff_t>(spatial), pads->end());
  result.ceil_mode = reader.integer("ceil_mode", 0) != 0;
  return result;
}

/// The kernel of a convolution, from the attribute or else from the weights.
Ints conv_kernel(const NodeReader& reader, const Graph& graph) {
  auto kernel = reader.ints("kernel_shape");
  if (!kernel.empty() || !reader.has_input(1)) return kernel;
  const auto& weights = graph.tensor(reader.input(1)).shape;
  if (weights && weights->size() > 2) kernel.assign(weights->begin() + 2, weights->end());
  return kernel;
}

Result<Operator> convert_conv(NodeReader& reader) {
  auto kernel = conv_kernel(reader, reader.graph());
  if (kernel.empty()) return unknown(reader, "the size of its kernel is not in the file");
  FLEETFIT_ASSIGN(auto geometry, window(reader, std::move(kernel)));
  return Conv{.window = std::move(geometry), .groups = reader.integer("group", 1)};
}

Result<Operator> convert_conv_transpose(NodeReader& reader) {
  auto kernel = conv_kernel(reader, reader.graph());
  if (kernel.empty()) return unknown(reader, "the size of its kernel is not in the file");
  const auto spatial = kernel.size();
  FLEETFIT_ASSIGN(auto geometry, window(reader, std::move(kernel)));
  FLEETFIT_ASSIGN(auto padding, per_dimension(reader, "output_padding", spatial, 0));
  auto output_shape = reader.ints("output_shape");
  // Some files give batch and channels too.
  if (output_shape.size() == spatial + 2)
    output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  return ConvTranspose{.window = std::move(geometry),
                       .groups = reader.integer("group", 1),
                       .output_padding = std::move(padding),
                       .output_shape = std::move(output_shape)};
}

Result<Operator> convert_pool(NodeReader& reader) {
  FLEETFIT_ASSIGN(auto geometry, window(reader, reader.ints("kernel_shape")));
  if (reader.integer("storage_order", 0) != 0)
    return unknown(reader, "indices in column-major order");
  const auto kind = reader.type() == "MaxPool" ? PoolKind::max : PoolKind::average;
  return Pool{.kind = kind,
              .window = std::move(geometry),
              .count_include_pad = reader.integer("count_include_pad", 0) != 0};
}

Result<Operator> convert_global_pool(NodeReader& reader) {
  return GlobalPool{.kind = reader.type() == "GlobalMaxPool" ? PoolKind::max : PoolKind::average};
}

// --- Products and normalizations ---

Result<Operator> convert_gemm(NodeReader& reader) {
  return Gemm{.alpha = reader.number("alpha", 1),
              .beta = reader.number("beta", 1),
              .trans_a = reader.integer("transA", 0) != 0,
              .trans_b = reader.integer("transB", 0) != 0};
}

Result<Operator> convert_matmul(NodeReader&) { return MatMul{}; }

Result<Operator> convert_batch_norm(NodeReader& reader) {
  if (reader.integer("training_mode", 0) != 0)
    return unknown(reader, "batch normalization in training mode");
  if (reader.integer("spatial", 1) != 1) return unknown(reader, "batch normalization per element");
  // Further outputs are statistics of training.
  if (reader.node().outputs.size() > 1) reader.node().outputs.resize(1);
  return BatchNorm{.epsilon = reader.number("epsilon", 1e-5F)};
}

Result<Operator> convert_instance_norm(NodeReader& reader) {
  return InstanceNorm{.epsilon = reader.number("epsilon", 1e-5F)};
}

Result<Operator> convert_layer_norm(NodeReader& reader) {
  return LayerNorm{.axis = reader.integer("axis", -1), .epsilon = reader.number("epsilon", 1e-5F)};
}

Result<Operator> convert_lrn(NodeReader& reader) {
  return Lrn{.size = reader.integer("size", 1),
             .alpha = reader.number("alpha", 1e-4F),
             .beta = reader.number("beta", 0.75F),
             .bias = reader.number("bias", 1)};
}

Result<Operator> convert_lp_normalization(NodeReader& reader) {
  return LpNormalization{.axis = reader.integer("axis", -1), .p = reader.integer("p", 2)};
}

Result<Operator> convert_softmax(NodeReader& reader) {
  // Before opset 13 all dimensions from the axis on were taken together.
  const bool to_end = reader.opset() < 13;
  const auto axis = reader.integer("axis", to_end ? 1 : -1);
  return Softmax{
      .axis = axis, .to_end = to_end && axis != -1, .log = reader.type() == "LogSoftmax"};
}

// --- Element-wise ---

Result<Operator> convert_activation(NodeReader& reader) {
  static const std::unordered_map<std::string_view, Activation> kFunctions = {
      {"Relu", kRelu},
      {"Sigmoid", kSigmoid},
      {"Tanh", kTanh},
      {"HardSwish", kHardSwish},
      {"Softplus", {ActivationKind::softplus}},
      {"Softsign", {ActivationKind::softsign}},
      {"Mish", {ActivationKind::mish}},
      {"LeakyRelu", {ActivationKind::leaky_relu, 0.01F}},
      {"Elu", {ActivationKind::elu, 1}},
      {"HardSigmoid", {ActivationKind::hard_sigmoid, 0.2F, 0.5F}},
      {"Selu", kSelu},
  };
  auto function = kFunctions.at(reader.type());
  function.alpha = reader.number("alpha", function.alpha);
  function.beta = reader.number(reader.type() == "Selu" ? "gamma" : "beta", function.beta);
  return Activate{function};
}

Result<Operator> convert_gelu(NodeReader& reader) {
  const bool approximate = reader.text("approximate", "none") == "tanh";
  return Activate{{approximate ? ActivationKind::gelu_tanh : ActivationKind::gelu}};
}

Result<Operator> convert_clip(NodeReader& reader) {
  float low = reader.number("min", std::numeric_limits<float>::lowest());
  float high = reader.number("max", std::numeric_limits<float>::max());
  for (std::size_t i = 1; i < 3; ++i) {
    if (!reader.has_input(i)) continue;
    const auto bound = reader.input_numbers(i);
    if (!bound || bound->size() != 1) return unknown(reader, "its bounds are computed at run time");
    (i == 1 ? low : high) = static_cast<float>(bound->front());
  }
  reader.keep_inputs(1);
  return Activate{{ActivationKind::clip, low, high}};
}

Result<Operator> convert_prelu(NodeReader&) { return PRelu{}; }

Result<Operator> convert_unary(NodeReader& reader) {
  static const std::unordered_map<std::string_view, UnaryKind> kKinds = {
      {"Abs", UnaryKind::abs},     {"Neg", UnaryKind::neg},
      {"Exp", UnaryKind::exp},     {"Log", UnaryKind::log},
      {"Sqrt", UnaryKind::sqrt},   {"Reciprocal", UnaryKind::reciprocal},
      {"Floor", UnaryKind::floor}, {"Ceil", UnaryKind::ceil},
      {"Round", UnaryKind::round}, {"Erf", UnaryKind::erf},
      {"Sin", UnaryKind::sin},     {"Cos", UnaryKind::cos},
      {"Sign", UnaryKind::sign},   {"Not", UnaryKind::logical_not}};
  return Unary{kKinds.at(reader.type())};
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
  static const std::unordered_map<std::string_view, ElementwiseKind> kKinds = {
      {"Add", ElementwiseKind::add},
      {"Sub", ElementwiseKind::sub},
      {"Mul", ElementwiseKind::mul},
      {"Div", ElementwiseKind::div},
      {"Pow", ElementwiseKind::pow},
      {"Mod", ElementwiseKind::mod},
      {"Min", ElementwiseKind::min},
      {"Max", ElementwiseKind::max},
      {"Sum", ElementwiseKind::sum},
      {"Mean", ElementwiseKind::mean},
      {"Equal", ElementwiseKind::equal},
      {"Greater", ElementwiseKind::greater},
      {"Less", ElementwiseKind::less},
      {"GreaterOrEqual", ElementwiseKind::greater_or_equal},
      {"LessOrEqual", ElementwiseKind::less_or_equal},
      {"And", ElementwiseKind::logical_and},
      {"Or", ElementwiseKind::logical_or},
      {"Xor", ElementwiseKind::logical_xor}};
  if (reader.opset() < 7) {
    FLEETFIT_TRY(align_second(reader));
  }
  const auto kind = kKinds.at(reader.type());
  if (kind == ElementwiseKind::mod && reader.integer("fmod", 0) != 0)
    return unknown(reader, "fmod");
  return Elementwise{kind};
}

Result<Operator> convert_where(NodeReader&) { return Where{}; }

Result<Operator> convert_cast(NodeReader& reader) {
  const auto to = dtype_of(reader.integer("to", 0));
  if (size_of(to) == 0) return unknown(reader, "a cast to a type that is not supported");
  return Cast{to};
}

Result<Operator> convert_quantize(NodeReader& reader) {
  return QuantizeLinear{reader.integer("axis", 1)};
}

Result<Operator> convert_dequantize(NodeReader& reader) {
  return DequantizeLinear{reader.integer("axis", 1)};
}

// --- Movement ---

Result<Operator> convert_concat(NodeReader& reader) { return Concat{reader.integer("axis", 1)}; }

Result<Operator> convert_split(NodeReader& reader) {
  if (reader.has("split")) reader.set_input(1, "split", reader.ints("split"));
  return Split{reader.integer("axis", 0)};
}

Result<Operator> convert_slice(NodeReader& reader) {
  if (reader.opset() < 10) {
    reader.set_input(1, "starts", reader.ints("starts"));
    reader.set_input(2, "ends", reader.ints("ends"));
    if (reader.has("axes")) reader.set_input(3, "axes", reader.ints("axes"));
  }
  return Slice{};
}

Result<Operator> convert_pad(NodeReader& reader) {
  const auto mode = reader.text("mode", "constant");
  Pad pad;
  if (mode == "reflect") {
    pad.mode = PadMode::reflect;
  } else if (mode == "edge") {
    pad.mode = PadMode::edge;
  } else if (mode != "constant") {
    return unknown(reader, fmt::format("padding of mode {}", mode));
  }
  if (reader.opset() < 11) {
    reader.set_input(1, "pads", reader.ints(reader.has("pads") ? "pads" : "paddings"));
    if (const auto value = reader.number("value", 0); value != 0)
      reader.set_input(2, "value", std::vector<float>{value});
  }
  if (reader.node().inputs.size() > 3) return unknown(reader, "padding of chosen axes (opset 18)");
  return pad;
}

Result<Operator> convert_upsample(NodeReader& reader) {
  const auto mode = reader.text("mode", "nearest");
  if (const auto* scales = reader.attribute("scales"))
    reader.set_input(1, "scales", scales->floats);
  if (!reader.has_input(1)) return unknown(reader, "its scales are not in the file");
  reader.node().inputs = {reader.input(0), kNoTensor, reader.input(1)};
  return Resize{.mode = mode == "nearest" ? ResizeMode::nearest : ResizeMode::linear,
                .coordinates = CoordinateMode::asymmetric,
                .nearest = NearestMode::floor};
}

Result<Operator> convert_resize(NodeReader& reader) {
  if (reader.opset() < 11) return convert_upsample(reader);
  static const std::unordered_map<std::string_view, CoordinateMode> kCoordinates = {
      {"half_pixel", CoordinateMode::half_pixel},
      {"pytorch_half_pixel", CoordinateMode::pytorch_half_pixel},
      {"align_corners", CoordinateMode::align_corners},
      {"asymmetric", CoordinateMode::asymmetric}};
  static const std::unordered_map<std::string_view, NearestMode> kNearest = {
      {"round_prefer_floor", NearestMode::round_prefer_floor},
      {"round_prefer_ceil", NearestMode::round_prefer_ceil},
      {"floor", NearestMode::floor},
      {"ceil", NearestMode::ceil}};
  static const std::unordered_map<std::string_view, ResizeMode> kModes = {
      {"nearest", ResizeMode::nearest},
      {"linear", ResizeMode::linear},
      {"cubic", ResizeMode::cubic}};
  const auto coordinates =
      kCoordinates.find(reader.text("coordinate_transformation_mode", "half_pixel"));
  const auto nearest = kNearest.find(reader.text("nearest_mode", "round_prefer_floor"));
  const auto mode = kModes.find(reader.text("mode", "nearest"));
  if (coordinates == kCoordinates.end())
    return unknown(reader, "its coordinate transformation is not supported");
  if (nearest == kNearest.end() || mode == kModes.end())
    return unknown(reader, "its mode is not supported");
  if (reader.integer("exclude_outside", 0) != 0)
    return unknown(reader, "weights outside of the image are excluded");
  if (reader.has("axes") || reader.integer("antialias", 0) != 0)
    return unknown(reader, "resizing of chosen axes (opset 18)");
  // An empty region of interest or empty scales mean that there are none.
  for (std::size_t i = 1; i < 3; ++i) {
    const auto values = reader.input_numbers(i);
    if (values && values->empty()) reader.node().inputs[i] = kNoTensor;
  }
  reader.node().inputs.resize(std::max<std::size_t>(reader.node().inputs.size(), 2), kNoTensor);
  reader.node().inputs[1] = kNoTensor;
  return Resize{.mode = mode->second,
                .coordinates = coordinates->second,
                .nearest = nearest->second,
                .cubic_coefficient = reader.number("cubic_coeff_a", -0.75F)};
}

Result<Operator> convert_transpose(NodeReader& reader) { return Transpose{reader.ints("perm")}; }

Result<Operator> convert_reshape(NodeReader& reader) {
  if (reader.has("shape")) reader.set_input(1, "shape", reader.ints("shape"));
  return Reshape{.allow_zero = reader.integer("allowzero", 0) != 0};
}

Result<Operator> convert_flatten(NodeReader& reader) { return Flatten{reader.integer("axis", 1)}; }

Result<Operator> convert_squeeze(NodeReader& reader) {
  if (reader.has("axes")) reader.set_input(1, "axes", reader.ints("axes"));
  return Squeeze{};
}

Result<Operator> convert_unsqueeze(NodeReader& reader) {
  if (reader.has("axes")) reader.set_input(1, "axes", reader.ints("axes"));
  return Unsqueeze{};
}

Result<Operator> convert_expand(NodeReader&) { return Expand{}; }
Result<Operator> convert_tile(NodeReader&) { return Tile{}; }
Result<Operator> convert_gather(NodeReader& reader) { return Gather{reader.integer("axis", 0)}; }

Result<Operator> convert_depth_to_space(NodeReader& reader) {
  return DepthToSpace{.block = reader.integer("blocksize", 0),
                      .column_row_depth = reader.text("mode", "DCR") == "CRD"};
}

Result<Operator> convert_space_to_depth(NodeReader& reader) {
  return SpaceToDepth{.block = reader.integer("blocksize", 0)};
}

// --- Reductions, constants ---

Result<Operator> convert_reduce(NodeReader& reader) {
  static const std::unordered_map<std::string_view, ReduceKind> kKinds = {
      {"ReduceMean", ReduceKind::mean},      {"ReduceSum", ReduceKind::sum},
      {"ReduceMax", ReduceKind::max},        {"ReduceMin", ReduceKind::min},
      {"ReduceProd", ReduceKind::prod},      {"ReduceL1", ReduceKind::l1},
      {"ReduceL2", ReduceKind::l2},          {"ReduceSumSquare", ReduceKind::sum_square},
      {"ReduceLogSum", ReduceKind::log_sum}, {"ReduceLogSumExp", ReduceKind::log_sum_exp}};
  Reduce reduce{.kind = kKinds.at(reader.type()),
                .axes = reader.ints("axes"),
                .keep_dims = reader.integer("keepdims", 1) != 0};
  if (reader.has_input(1)) {
    const auto axes = reader.input_ints(1);
    if (!axes) return unknown(reader, "its axes are computed at run time");
    reduce.axes = *axes;
  }
  reader.keep_inputs(1);
  if (reduce.axes.empty() && reader.integer("noop_with_empty_axes", 0) != 0) return Identity{};
  return reduce;
}

Result<Operator> convert_arg_extreme(NodeReader& reader) {
  return ArgExtreme{.smallest = reader.type() == "ArgMin",
                    .axis = reader.integer("axis", 0),
                    .keep_dims = reader.integer("keepdims", 1) != 0,
                    .select_last = reader.integer("select_last_index", 0) != 0};
}

Result<Operator> convert_top_k(NodeReader& reader) {
  if (reader.has("k")) reader.set_input(1, "k", Ints{reader.integer("k", 1)});
  return TopK{.axis = reader.integer("axis", -1),
              .largest = reader.integer("largest", 1) != 0,
              .sorted = reader.integer("sorted", 1) != 0};
}

Result<Operator> convert_constant_of_shape(NodeReader& reader) {
  const auto* value = reader.attribute("value");
  if (value == nullptr || !value->t) return ConstantOfShape{};
  FLEETFIT_ASSIGN(auto tensor, ConstantReader(nullptr, {}).read(*value->t));
  const auto size = size_of(tensor.dtype);
  if (tensor.data->size_bytes() != size) return bad_attribute("value");
  Graph scratch;
  const auto id = scratch.add_tensor(tensor);
  if (const auto numbers = constant_numbers(scratch, id))
    return ConstantOfShape{tensor.dtype, numbers->front()};
  return unknown(reader, fmt::format("filling with {}", to_string(tensor.dtype)));
}

Result<Operator> convert_shape(NodeReader& reader) {
  ShapeOf shape{.start = reader.integer("start", 0)};
  if (reader.has("end")) shape.end = reader.integer("end", 0);
  return shape;
}

Result<Operator> convert_range(NodeReader&) { return Range{}; }
Result<Operator> convert_identity(NodeReader&) { return Identity{}; }

Result<Operator> convert_dropout(NodeReader& reader) {
  if (reader.has_input(2)) {
    const auto training = reader.input_numbers(2);
    if (!training || training->empty() || training->front() != 0)
      return unknown(reader, "dropout in training mode");
  }
  reader.keep_inputs(1);
  return Dropout{};
}

const std::unordered_map<std::string_view, Converter>& converters() {
  static const std::unordered_map<std::string_view, Converter> kConverters = {
      {"Conv", convert_conv},
      {"ConvTranspose", convert_conv_transpose},
      {"MaxPool", convert_pool},
      {"AveragePool", convert_pool},
      {"GlobalMaxPool", convert_global_pool},
      {"GlobalAveragePool", convert_global_pool},
      {"Gemm", convert_gemm},
      {"MatMul", convert_matmul},
      {"BatchNormalization", convert_batch_norm},
      {"InstanceNormalization", convert_instance_norm},
      {"LayerNormalization", convert_layer_norm},
      {"LRN", convert_lrn},
      {"LpNormalization", convert_lp_normalization},
      {"Softmax", convert_softmax},
      {"LogSoftmax", convert_softmax},
      {"Relu", convert_activation},
      {"Sigmoid", convert_activation},
      {"Tanh", convert_activation},
      {"HardSwish", convert_activation},
      {"HardSigmoid", convert_activation},
      {"Softplus", convert_activation},
      {"Softsign", convert_activation},
      {"Mish", convert_activation},
      {"LeakyRelu", convert_activation},
      {"Elu", convert_activation},
      {"Selu", convert_activation},
      {"Gelu", convert_gelu},
      {"Clip", convert_clip},
      {"PRelu", convert_prelu},
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
      {"Where", convert_where},
      {"Cast", convert_cast},
      {"QuantizeLinear", convert_quantize},
      {"DequantizeLinear", convert_dequantize},
      {"Concat", convert_concat},
      {"Split", convert_split},
      {"Slice", convert_slice},
      {"Pad", convert_pad},
      {"Upsample", convert_upsample},
      {"Resize", convert_resize},
      {"Transpose", convert_transpose},
      {"Reshape", convert_reshape},
      {"Flatten", convert_flatten},
      {"Squeeze", convert_squeeze},
      {"Unsqueeze", convert_unsqueeze},
      {"Expand", convert_expand},
      {"Tile", convert_tile},
      {"Gather", convert_gather},
      {"DepthToSpace", convert_depth_to_space},
      {"SpaceToDepth", convert_space_to_depth},
      {"ReduceMean", convert_reduce},
      {"ReduceSum", convert_reduce},
      {"ReduceMax", convert_reduce},
      {"ReduceMin", convert_reduce},
      {"ReduceProd", convert_reduce},
      {"ReduceL1", convert_reduce},
      {"ReduceL2", convert_reduce},
      {"ReduceSumSquare", convert_reduce},
      {"ReduceLogSum", convert_reduce},
      {"ReduceLogSumExp", convert_reduce},
      {"ArgMax", convert_arg_extreme},
      {"ArgMin", convert_arg_extreme},
      {"TopK", convert_top_k},
      {"ConstantOfShape", convert_constant_of_shape},
      {"Shape", convert_shape},
      {"Range", convert_range},
      {"Identity", convert_identity},
      {"Dropout", convert_dropout},
  };
  return kConverters;
}

}  // namespace

Result<Operator> convert_operator(NodeReader& reader) {
  const auto found = converters().find(reader.type());
  if (found == converters().end()) return unknown(reader, "no such operator is known");
  return found->second(reader);
}

}  // namespace fleetfit::graph::onnx_format
