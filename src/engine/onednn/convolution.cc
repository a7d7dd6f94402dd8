#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/onednn/onednn.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::onednn {
namespace {

using dnnl::memory;
using graph::Conv;
using graph::DType;
using graph::Layout;

constexpr std::size_t kImage = 0;
constexpr std::size_t kWeights = 1;
constexpr std::size_t kBias = 2;

bool has_bias(const Task& task) {
  return has_input(task, kBias) && !(task.adds_last_input && task.inputs.size() == kBias + 1);
}

/// The weights as groups x outputs x inputs x kernel…, or without groups if there is one only.
memory::desc weights_desc(const Operand& weights, const Conv& conv) {
  memory::dims dims(weights.shape.begin(), weights.shape.end());
  memory::dims strides(dims.size(), 1);
  for (std::size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  if (conv.layout == Layout::nhwc) {  // outputs x kernel… x inputs
    std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
    std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
  }
  if (conv.groups > 1) {
    dims[0] /= conv.groups;
    strides.insert(strides.begin(), strides[0] * dims[0]);
    dims.insert(dims.begin(), conv.groups);
  }
  return {dims, data_type(weights.dtype).value(), strides};
}

memory::desc any_layout(const memory::desc& desc) {
  return {desc.dims(), desc.data_type(), memory::format_tag::any};
}

std::vector<float> real_bias(const Operand& bias, std::int64_t channels) {
  std::vector<float> values(static_cast<std::size_t>(channels), 0.0F);
  if (!bias.present) return values;
  if (bias.dtype == DType::f32) {
    std::ranges::copy(bias.constant->as<float>(), values.begin());
    return values;
  }
  const auto stored = bias.constant->as<std::int32_t>();
  const auto& scales = bias.quantization->scales;
  for (std::size_t c = 0; c < values.size(); ++c) {
    values[c] = static_cast<float>(stored[c]) * scales[scales.size() == 1 ? 0 : c];
  }
  return values;
}

/// Whether rounding to the result's type does what the activation does.
bool saturation_does(const graph::Activation& activation, const Operand& result) {
  if (result.dtype != DType::u8 || result.quantization->zero_points[0] != 0) return false;
  if (activation.kind == graph::ActivationKind::relu) return true;
  constexpr float kMost = 255.0F;
  return activation.kind == graph::ActivationKind::clip && activation.alpha == 0.0F &&
         result.quantization->scales[0] * kMost <= activation.beta * 1.0001F;
}

/// Scales, zero points and post-ops of a quantized convolution. False if the library cannot.
bool set_integers(const Task& task, dnnl::primitive_attr& attributes) {
  const auto& in = *task.inputs[kImage].quantization;
  const auto& out = *task.outputs[0].quantization;
  const auto& activation = task.node.activation;
  const bool real = !scales_along(activation);
  const float unit = real ? 1.0F : out.scales[0];  // what post-ops count in
  std::vector<float> scales;
  for (const float scale : task.inputs[kWeights].quantization->scales)
    scales.push_back(in.scales[0] * scale / unit);
  attributes.set_output_scales(scales.size() == 1 ? 0 : 1 << 1, scales);
  if (in.zero_points[0] != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {in.zero_points[0]});
  if (out.zero_points[0] != 0) attributes.set_zero_points(DNNL_ARG_DST, 0, {out.zero_points[0]});

  dnnl::post_ops post_ops;
  if (task.adds_last_input) {
    const Operand& residual = task.inputs.back();
    post_ops.append_sum(residual.quantization->scales[0] / unit,
                        residual.quantization->zero_points[0], data_type(residual.dtype).value());
  }
  if (activation && !saturation_does(activation, task.outputs[0])) {
    if (!append_activation(post_ops, activation, unit)) return false;
    if (real)
      post_ops.append_eltwise(1.0F, dnnl::algorithm::eltwise_linear, 1.0F / out.scales[0], 0.0F);
  }
  attributes.set_post_ops(post_ops);
  return true;
}

bool all_zero(const std::vector<std::int32_t>& values) {
  return std::ranges::all_of(values, [](std::int32_t value) { return value == 0; });
}

bool is_byte(DType type) { return type == DType::i8 || type == DType::u8; }

bool one_scale(const Operand& operand) {
  return operand.quantization && operand.quantization->scales.size() == 1;
}

/// Without VNNI the library adds products of bytes in 16 bits, which overflow: results would be
/// wrong by tens of quanta.
bool adds_bytes_exactly() {
  const auto isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx2_vnni || isa >= dnnl_cpu_isa_avx512_core_vnni;
}

bool is_quantized(const Task& task) {
  const Operand& weights = task.inputs[kWeights];
  return adds_bytes_exactly() && is_byte(task.inputs[kImage].dtype) &&
         is_byte(task.outputs[0].dtype) && one_scale(task.inputs[kImage]) &&
         one_scale(task.outputs[0]) && weights.dtype == DType::i8 && weights.quantization &&
         all_zero(weights.quantization->zero_points) &&
         (!task.adds_last_input || one_scale(task.inputs.back()));
}

bool is_float(const Task& task) {
  const auto float_or_absent = [](const Operand& operand) {
    return !operand.present || operand.dtype == DType::f32;
  };
  return std::ranges::all_of(task.inputs, float_or_absent) && task.outputs[0].dtype == DType::f32;
}

/// A convolution in the library's terms.
struct Problem {
  memory::desc source;
  memory::desc weights;  ///< as they lie in the graph
  memory::desc result;
  memory::dims strides;
  memory::dims dilations;
  memory::dims begin;
  memory::dims end;
};

Problem problem_of(const Task& task, const Conv& conv) {
  const auto pads = graph::resolve_padding(
      conv.window, graph::spatial_extents(task.inputs[kImage].shape, conv.layout));
  memory::dims dilations(conv.window.dilations);
  for (auto& dilation : dilations) --dilation;  // the library counts the holes
  return {.source = image_desc(task.inputs[kImage], conv.layout),
          .weights = weights_desc(task.inputs[kWeights], conv),
          .result = image_desc(task.outputs[0], conv.layout),
          .strides = conv.window.strides,
          .dilations = dilations,
          .begin = pads.begin,
          .end = pads.end};
}

/// A product with a matrix of weights as a convolution of images of one pixel.
Problem problem_of(const Task& task, const graph::Gemm& gemm) {
  const Operand& b = task.inputs[kWeights];
  const std::int64_t out = gemm.trans_b ? b.shape[0] : b.shape[1];
  const std::int64_t in = gemm.trans_b ? b.shape[1] : b.shape[0];
  const std::int64_t rows = graph::elements(task.inputs[kImage].shape) / in;
  const auto pixels = [&](const Operand& operand, std::int64_t channels) {
    return memory::desc({rows, channels, 1, 1}, data_type(operand.dtype).value(),
                        memory::format_tag::nhwc);
  };
  const memory::dims strides =
      gemm.trans_b ? memory::dims{in, 1, in, in} : memory::dims{1, out, out, out};
  return {.source = pixels(task.inputs[kImage], in),
          .weights = {{out, in, 1, 1}, data_type(b.dtype).value(), strides},
          .result = pixels(task.outputs[0], out),
          .strides = {1, 1},
          .dilations = {0, 0},
          .begin = {0, 0},
          .end = {0, 0}};
}

/// The bias in the units that the library adds it in: those of the sum of products.
std::vector<float> packed_bias(const Task& task, std::int64_t channels) {
  auto bias = real_bias(task.inputs[kBias], channels);
  if (!is_quantized(task)) return bias;
  const auto& scales = task.inputs[kWeights].quantization->scales;
  for (std::size_t c = 0; c < bias.size(); ++c) {
    bias[c] /= task.inputs[kImage].quantization->scales[0] * scales[scales.size() == 1 ? 0 : c];
  }
  return bias;
}

bool set_floats(const Task& task, dnnl::primitive_attr& attributes) {
  dnnl::post_ops post_ops;
  if (task.adds_last_input) post_ops.append_sum(1.0F);
  if (!append_activation(post_ops, task.node.activation)) return false;
  attributes.set_post_ops(post_ops);
  return true;
}

bool has_constant_weights(const Task& task) {
  return task.inputs[kWeights].constant && (!has_bias(task) || task.inputs[kBias].constant);
}

using Chosen = dnnl::convolution_forward::primitive_desc;

bool is_called(const Chosen& chosen, std::string_view name) {
  return std::string_view(chosen.impl_info_str()).starts_with(name);
}

/// In version 2.6 this kernel calls one that was never made, where the inputs of bytes fill several
/// blocks of 64 but for one to three of the last.
bool would_crash(const Chosen& chosen, const Problem& problem) {
  constexpr std::int64_t kBlock = 64;
  constexpr std::int64_t kTogether = 4;
  const auto dims = problem.weights.dims();
  const std::int64_t inputs = dims[dims.size() == problem.source.dims().size() ? 1 : 2];
  return problem.weights.data_type() == memory::data_type::s8 && is_called(chosen, "brgconv:") &&
         inputs > kBlock && inputs % kBlock > kBlock - kTogether;
}

/// The first of the library's kernels that can be run.
std::optional<Chosen> first_kernel(const Problem& problem, bool with_bias,
                                   dnnl::algorithm algorithm,
                                   const dnnl::primitive_attr& attributes) {
  const memory::desc bias({problem.result.dims()[1]}, memory::data_type::f32,
                          memory::format_tag::x);
  // Going on to the next kernel reads this again.
  const dnnl::convolution_forward::desc description(
      dnnl::prop_kind::forward_inference, algorithm, problem.source, any_layout(problem.weights),
      with_bias ? bias : memory::desc(), problem.result, problem.strides, problem.dilations,
      problem.begin, problem.end);
  Chosen chosen(description, attributes, cpu());
  while (would_crash(chosen, problem)) {
    if (!chosen.next_impl()) return std::nullopt;
  }
  return chosen;
}

/// What the library would do; nothing if it has no fast way.
std::optional<Chosen> choose(const Task& task, const Problem& problem, dnnl::algorithm algorithm) {
  auto attribute = attributes();
  const bool possible =
      is_quantized(task) ? set_integers(task, attribute) : set_floats(task, attribute);
  if (!possible) return std::nullopt;
  auto chosen = first_kernel(problem, has_bias(task), algorithm, attribute);
  if (!chosen || is_slow(chosen->impl_info_str())) return std::nullopt;
  return chosen;
}

/// The way in which a task is convolved.
struct Way {
  Problem problem;
  Chosen chosen;
  std::int64_t joined = 1;  ///< groups that became one, with weights of zero between them
};

/// A convolution of images with the channels last, with so many groups joined to one.
Problem problem_of(const Task& task, const Conv& conv, std::int64_t joined) {
  if (joined == 1) return problem_of(task, conv);
  Task wider = task;
  wider.inputs[kWeights].shape.back() *= joined;
  Conv fewer = conv;
  fewer.groups /= joined;
  return problem_of(wider, fewer);
}

/// Where the filters of a group of bytes are no multiple of four, the library multiplies matrices
/// group by group, at a tenth of its speed and less. Groups joined to larger ones are quicker, as
/// long as they are few.
std::optional<Way> way_of(const Task& task, const Conv& conv, dnnl::algorithm algorithm) {
  constexpr std::int64_t kMostJoined = 16;
  const bool joins = is_quantized(task) && conv.layout == Layout::nhwc;
  std::optional<Way> slow;
  for (std::int64_t joined = 1; joined <= (joins ? kMostJoined : 1); ++joined) {
    if (conv.groups % joined != 0) continue;
    Problem problem = problem_of(task, conv, joined);
    const auto chosen = choose(task, problem, algorithm);
    if (!chosen) return slow;
    Way way{std::move(problem), *chosen, joined};
    if (!joins || !is_called(*chosen, "x64:gemm")) return way;
    if (!slow) slow = std::move(way);
  }
  return slow;
}

/// The weights of each group's filters, between zeros for the inputs of the groups joined to it.
std::vector<std::byte> joined_weights(const Operand& weights, const Conv& conv,
                                      std::int64_t joined) {
  const auto values = weights.constant->bytes();  // of one byte each
  const auto inputs = static_cast<std::size_t>(weights.shape.back());
  const std::size_t taps_of_group = values.size() / inputs / static_cast<std::size_t>(conv.groups);
  const auto times = static_cast<std::size_t>(joined);
  std::vector<std::byte> wide(values.size() * times);
  for (std::size_t tap = 0; tap < values.size() / inputs; ++tap) {
    const std::size_t place = tap * times + tap / taps_of_group % times;
    std::ranges::copy(values.subspan(tap * inputs, inputs),
                      wide.begin() + static_cast<std::ptrdiff_t>(place * inputs));
  }
  return wide;
}

/// `weights` lie as the problem says.
KernelPtr make(const Task& task, const Problem& problem, const Chosen& chosen,
               const std::byte* weights) {
  std::vector<std::pair<int, PackedWeight>> packed;
  packed.emplace_back(DNNL_ARG_WEIGHTS,
                      PackedWeight(weights, problem.weights, chosen.weights_desc()));
  if (has_bias(task)) {
    const auto bias = packed_bias(task, problem.result.dims()[1]);
    packed.emplace_back(DNNL_ARG_BIAS,
                        PackedWeight(bias.data(), chosen.bias_desc(), chosen.bias_desc()));
  }
  const auto shared = task.adds_last_input ? std::optional(task.inputs.size() - 1) : std::nullopt;
  return primitive_kernel(chosen, dnnl::convolution_forward(chosen),
                          {{DNNL_ARG_SRC, kImage, chosen.src_desc()}}, chosen.dst_desc(),
                          std::move(packed), shared);
}

}  // namespace

bool takes_winograd(const Task& task) {
  const auto* conv = std::get_if<Conv>(&task.node.op);
  if (conv == nullptr || task.inputs[kImage].format != Format::blocked) return false;
  const auto all = [](const graph::Ints& values, std::int64_t wanted) {
    return std::ranges::all_of(values, [&](std::int64_t value) { return value == wanted; });
  };
  return conv->groups == 1 && all(conv->window.kernel, 3) && all(conv->window.strides, 1) &&
         all(conv->window.dilations, 1);
}

bool can_convolve(const Task& task) {
  const auto* conv = std::get_if<Conv>(&task.node.op);
  return conv != nullptr && has_constant_weights(task) && (is_quantized(task) || is_float(task)) &&
         way_of(task, *conv, dnnl::algorithm::convolution_direct).has_value();
}

KernelPtr make_convolution(const Task& task, dnnl::algorithm algorithm) {
  const auto* conv = std::get_if<Conv>(&task.node.op);
  if (conv == nullptr || !has_constant_weights(task) || (!is_quantized(task) && !is_float(task)))
    return nullptr;
  const auto way = way_of(task, *conv, algorithm);
  if (!way) return nullptr;
  const Operand& weights = task.inputs[kWeights];
  if (way->joined == 1)
    return make(task, way->problem, way->chosen, weights.constant->bytes().data());
  const auto wide = joined_weights(weights, *conv, way->joined);
  return make(task, way->problem, way->chosen, wide.data());
}

KernelPtr make_quantized_gemm(const Task& task, const graph::Gemm& gemm) {
  const bool has_scaling = gemm.alpha != 1 || gemm.beta != 1 || gemm.trans_a;
  if (!has_constant_weights(task) || !is_quantized(task) || has_scaling) return nullptr;
  const Problem problem = problem_of(task, gemm);
  const auto chosen = choose(task, problem, dnnl::algorithm::convolution_direct);
  if (!chosen) return nullptr;
  return make(task, problem, *chosen, task.inputs[kWeights].constant->bytes().data());
}

}  // namespace fleetfit::engine::onednn
