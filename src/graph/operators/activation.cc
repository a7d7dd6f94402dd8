#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "graph/ncnn/layers.h"
#include "graph/operators/family.h"

namespace fleetfit::graph {
namespace {

using namespace interpreter;
using namespace onnx_format;
using namespace rewrite;
using namespace tflite;

constexpr std::array<std::string_view, 16> kActivationNames = {
    "",          "Relu", "Clip", "LeakyRelu", "Elu",      "Sigmoid",  "HardSigmoid", "Tanh",
    "HardSwish", "Silu", "Gelu", "GeluTanh",  "Softplus", "Softsign", "Selu",        "Mish"};
constexpr std::array<std::string_view, 1> kPReluName = {"PRelu"};

std::string_view name_of(const Activate& op) { return type_name(op.function.kind); }

Price price_of(const Activate& op) { return price_of(op.function); }

}  // namespace

std::string_view type_name(ActivationKind kind) {
  return kActivationNames[static_cast<std::size_t>(kind)];
}

Price price_of(const Activation& activation) {
  switch (activation.kind) {
    case ActivationKind::none:
      return Price::nothing;
    case ActivationKind::relu:
    case ActivationKind::clip:
    case ActivationKind::leaky_relu:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::hard_swish:
      return Price::cheap;
    default:
      return Price::costly;
  }
}

namespace {

/// NaN passes through, unlike with std::clamp's opposite comparisons.
double clip(double x, double low, double high) {
  if (x < low) x = low;
  return x > high ? high : x;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// log(1 + e^x) without overflow.
double softplus(double x) { return std::log1p(std::exp(-std::abs(x))) + (x < 0 ? 0 : x); }

double gelu_tanh(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

}  // namespace

double interpreter::apply(const Activation& activation, double x) {
  const double alpha = activation.alpha;
  const double beta = activation.beta;
  switch (activation.kind) {
    case ActivationKind::none:
      return x;
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::clip:
      return clip(x, alpha, beta);
    case ActivationKind::leaky_relu:
      return x < 0 ? alpha * x : x;
    case ActivationKind::elu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case ActivationKind::sigmoid:
      return sigmoid(x);
    case ActivationKind::hard_sigmoid:
      return clip(alpha * x + beta, 0, 1);
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::hard_swish:
      return x * clip(x / 6 + 0.5, 0, 1);
    case ActivationKind::silu:
      return x * sigmoid(x);
    case ActivationKind::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case ActivationKind::gelu_tanh:
      return gelu_tanh(x);
    case ActivationKind::softplus:
      return softplus(x);
    case ActivationKind::softsign:
      return x / (1 + std::abs(x));
    case ActivationKind::selu:
      return beta * (x < 0 ? alpha * std::expm1(x) : x);
    case ActivationKind::mish:
      return x * std::tanh(softplus(x));
  }
  return x;
}

Value interpreter::activate(const Value& x, const Activation& activation) {
  if (!activation) return x;
  const Form form{x.dtype, x.shape};
  if (is_float(x.dtype)) {
    auto numbers = read<double>(x);
    for (auto& number : numbers) number = apply(activation, number);
    return write(form, numbers);
  }
  auto numbers = read<std::int64_t>(x);
  for (auto& number : numbers) {
    // What the function leaves alone stays exact, even where a double is not.
    const auto before = static_cast<double>(number);
    const auto after = apply(activation, before);
    if (after != before) number = truncate<std::int64_t>(after);
  }
  return write(form, numbers);
}

namespace {

Values run(const Activate& op, const Call& call) {
  return one(activate(call.input(0), op.function));
}

/// One slope for all, or as many as broadcasting brings to the elements.
Values run(const PRelu&, const Call& call) {
  auto x = read<double>(call.input(0));
  FLEETFIT_ASSIGN(const auto full, broadcast(call.input(1), call.result().shape));
  const auto slopes = read<double>(full);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] < 0) x[i] *= slopes[i];
  }
  return one(write(call.result(), x));
}

/// A function of ONNX, with the values of parameters that a file leaves out and their names.
struct OnnxFunction {
  Activation usual;
  const char* alpha = nullptr;
  const char* beta = nullptr;
};
constexpr auto kFunctions = std::to_array<OnnxFunction>({
    {kRelu},
    {kSigmoid},
    {kTanh},
    {kHardSwish},
    {{ActivationKind::softplus}},
    {{ActivationKind::softsign}},
    {{ActivationKind::mish}},
    {{ActivationKind::leaky_relu, 0.01F}, "alpha"},
    {{ActivationKind::elu, 1}, "alpha"},
    {{ActivationKind::hard_sigmoid, 0.2F, 0.5F}, "alpha", "beta"},
    {kSelu, "alpha", "gamma"},
});

Result<Operator> convert_activation(NodeReader& reader) {
  const auto* known = std::ranges::find_if(
      kFunctions, [&](const OnnxFunction& f) { return type_name(f.usual.kind) == reader.type(); });
  auto function = known->usual;
  if (known->alpha != nullptr) function.alpha = reader.number(known->alpha, function.alpha);
  if (known->beta != nullptr) function.beta = reader.number(known->beta, function.beta);
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

/// A bound of Clip, which is left out where there is none.
void write_bound(NodeWriter& out, std::string_view role, float value, float unbounded) {
  if (value == unbounded) return out.leave_out_input();
  out.add_input(
      role,
      {.dtype = DType::f32, .shape = Shape{}, .data = TensorData::copy(std::vector<float>{value})});
}

void write_onnx(const Activate& op, NodeWriter& out) {
  const auto& f = op.function;
  if (f.kind == ActivationKind::clip) {
    write_bound(out, "min", f.alpha, std::numeric_limits<float>::lowest());
    write_bound(out, "max", f.beta, std::numeric_limits<float>::max());
  }
  for (const auto& known : kFunctions) {
    if (known.usual.kind != f.kind) continue;
    if (known.alpha != nullptr) out.set(known.alpha, f.alpha);
    if (known.beta != nullptr) out.set(known.beta, f.beta);
  }
}

Status lower_onnx(const Activate& op, Node& node, Lowering& out) {
  switch (op.function.kind) {
    case ActivationKind::silu:
    case ActivationKind::mish:
    case ActivationKind::gelu:
    case ActivationKind::gelu_tanh:
      lower_activation(node, op.function, node.inputs[0], node.outputs[0], out);
      return {};
    default:
      return out.keep(std::move(node));
  }
}

constexpr Activation kRelu0To1{ActivationKind::clip, 0, 1};
constexpr Activation kReluN1To1{ActivationKind::clip, -1, 1};
constexpr Activation kElu{ActivationKind::elu, 1};

template <Activation activation>
Result<Converted> convert_activation(Conversion& c) {
  return Converted{.op = Activate{activation}, .inputs = c.inputs};
}

Result<Converted> convert_leaky_relu(Conversion& c) {
  const float alpha = c.options("LeakyReluOptions").number("alpha");
  return Converted{.op = Activate{{ActivationKind::leaky_relu, alpha}}, .inputs = c.inputs};
}

Result<Converted> convert_gelu(Conversion& c) {
  const bool approximate = c.options("GeluOptions").flag("approximate");
  const auto kind = approximate ? ActivationKind::gelu_tanh : ActivationKind::gelu;
  return Converted{.op = Activate{{kind}}, .inputs = c.inputs};
}

}  // namespace
}  // namespace fleetfit::graph

namespace fleetfit::graph::ncnn {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool is_near(float value, float expected) {
  return std::abs(value - expected) <= 1e-3F * std::abs(expected);
}

void activate(Conversion& c, const Activation& function) {
  const auto blob = c.blob(0);
  output_like(c, c.add(Activate{function}, {blob.tensor}), blob);
}

template <ActivationKind kind>
void plain(Conversion& c) {
  activate(c, {kind});
}

void relu(Conversion& c) {
  const auto slope = c.params().number(0, "slope", 0);
  activate(c, slope == 0 ? kRelu : Activation{ActivationKind::leaky_relu, slope});
}

void clip(Conversion& c) {
  activate(c, {ActivationKind::clip, c.params().number(0, "min", -kLargest),
               c.params().number(1, "max", kLargest)});
}

void elu(Conversion& c) { activate(c, {ActivationKind::elu, c.params().number(0, "alpha", 0.1F)}); }

void selu(Conversion& c) {
  const auto alpha = c.params().number(0, "alpha", 1.67326324F);
  const auto lambda = c.params().number(1, "lambda", 1.050700987F);
  if (is_near(alpha, 1.67326324F) && is_near(lambda, 1.050700987F)) return activate(c, kSelu);
  const auto blob = c.blob(0);
  const auto y = c.add(Activate{{ActivationKind::elu, alpha}}, {blob.tensor});
  output_like(
      c, c.add(Elementwise{.kind = ElementwiseKind::mul}, {y, c.scalar("lambda", lambda)}, "scale"),
      blob);
}

void gelu(Conversion& c) {
  const bool fast = c.params().flag(0, "fast_gelu");
  activate(c, {fast ? ActivationKind::gelu_tanh : ActivationKind::gelu});
}

void hard_sigmoid(Conversion& c) {
  activate(c, {ActivationKind::hard_sigmoid, c.params().number(0, "alpha", 0.2F),
               c.params().number(1, "beta", 0.5F)});
}

void hard_swish_layer(Conversion& c) {
  const auto alpha = c.params().number(0, "alpha", 0.2F);
  const auto beta = c.params().number(1, "beta", 0.5F);
  const auto blob = c.blob(0);
  output_like(c, hard_swish(c, blob.tensor, alpha, beta), blob);
}

void prelu(Conversion& c) {
  const auto blob = c.blob(0);
  const auto count = c.params().integer({.id = 0, .name = "num_slope", .fallback = 1, .low = 1});
  const auto shape = count == 1 ? Shape{1} : per_channel(blob, count);
  output_like(c, c.add(PRelu{}, {blob.tensor, c.filled("slope", shape, 0.25)}), blob);
}

bool is_usual_hard_swish(float alpha, float beta) {
  return is_near(alpha, 1.0F / 6) && is_near(beta, 0.5F);
}

/// The value of an activation's parameter that convolutions keep in a list.
float fused_number(const std::vector<double>& numbers, std::size_t i, float fallback) {
  return i < numbers.size() ? static_cast<float>(numbers[i]) : fallback;
}

constexpr std::array<LayerType, 14> kLayers = {{
    {"ReLU", relu},
    {"Clip", clip},
    {"ELU", elu},
    {"SELU", selu},
    {"GELU", gelu},
    {"HardSigmoid", hard_sigmoid},
    {"HardSwish", hard_swish_layer},
    {"Swish", plain<ActivationKind::silu>},
    {"Mish", plain<ActivationKind::mish>},
    {"Sigmoid", plain<ActivationKind::sigmoid>},
    {"TanH", plain<ActivationKind::tanh>},
    {"Softplus", plain<ActivationKind::softplus>},
    {"BNLL", plain<ActivationKind::softplus>},
    {"PReLU", prelu},
}};

}  // namespace

TensorId hard_swish(Conversion& c, TensorId x, float alpha, float beta) {
  if (is_usual_hard_swish(alpha, beta)) return c.add(Activate{kHardSwish}, {x});
  const auto gate = c.add(Activate{{ActivationKind::hard_sigmoid, alpha, beta}}, {x}, "gate");
  return c.add(Elementwise{.kind = ElementwiseKind::mul}, {x, gate}, "gated");
}

TensorId fused_activation(Conversion& c, TensorId x) {
  const auto kind = c.params().integer({.id = 9, .name = "activation_type"});
  const auto numbers = c.params().numbers(10);
  const auto number = [&](std::size_t i, float fallback) {
    return fused_number(numbers, i, fallback);
  };
  switch (kind) {
    case 0:
      return x;
    case 1:
      c.activate_last(kRelu);
      return x;
    case 2:
      c.activate_last({ActivationKind::leaky_relu, number(0, 0)});
      return x;
    case 3:
      c.activate_last({ActivationKind::clip, number(0, -kLargest), number(1, kLargest)});
      return x;
    case 4:
      c.activate_last(kSigmoid);
      return x;
    case 5:
      c.activate_last({ActivationKind::mish});
      return x;
    case 6:
      if (is_usual_hard_swish(number(0, 0), number(1, 0))) {
        c.activate_last(kHardSwish);
        return x;
      }
      return hard_swish(c, x, number(0, 0), number(1, 0));
    default:
      c.fail(fmt::format("activation_type {} is not known", kind));
      return x;
  }
}

std::span<const LayerType> activation_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn

namespace fleetfit::graph {
namespace {

constexpr auto kOperators = std::to_array<OperatorTraits>({
    describe<Activate>(elementwise({.number = 15,
                                    .quantized = quantization::Role::computes,
                                    .activation_names = std::span(kActivationNames).subspan(1)})),
    describe<PRelu>(broadcast_elementwise({.number = 9,
                                           .name = kPReluName[0],
                                           .arity = {2, 2},
                                           .infer = infer_like_first,
                                           .trained = {1},
                                           .price = Price::cheap,
                                           .activation_names = kPReluName})),
});

constexpr auto kOnnx = std::to_array<OnnxReader>({
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
});

constexpr auto kTflite = std::to_array<TfliteReader>({
    {"LOGISTIC", convert_activation<kSigmoid>},
    {"TANH", convert_activation<kTanh>},
    {"RELU", convert_activation<kRelu>},
    {"RELU6", convert_activation<kRelu6>},
    {"RELU_0_TO_1", convert_activation<kRelu0To1>},
    {"RELU_N1_TO_1", convert_activation<kReluN1To1>},
    {"ELU", convert_activation<kElu>},
    {"HARD_SWISH", convert_activation<kHardSwish>},
    {"LEAKY_RELU", convert_leaky_relu},
    {"GELU", convert_gelu},
    {"PRELU", convert_plain<PRelu>, {2, 2}},
});

}  // namespace

OperatorFamily activation_family() {
  return {.operators = kOperators, .onnx = kOnnx, .tflite = kTflite};
}

}  // namespace fleetfit::graph
