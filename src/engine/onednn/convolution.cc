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

bool has(const Task& task, std::size_t input) {
  return input < task.inputs.size() && task.inputs[input].present;
}

bool has_bias(const Task& task) {
  return has(task, kBias) && !(task.adds_last_input && task.inputs.size() == kBias + 1);
}

/// The weights as groups x outputs x inputs x kernel…, or without groups if there is one only.
memory::desc weights_desc(const Operand& weights, const Conv& conv, memory::data_type type) {
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
  return {dims, type, strides};
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

bool is_real_activation(const graph::Activation& activation) {
  using Kind = graph::ActivationKind;
  return activation && activation.kind != Kind::relu && activation.kind != Kind::clip &&
         activation.kind != Kind::leaky_relu;
}

/// Whether rounding to the result's type does what the activation does.
bool saturation_does(const graph::Activation& activation, const Operand& result) {
  if (result.dtype != DType::u8 || result.quantization->zero_points[0] != 0) return false;
  if (activation.kind == graph::ActivationKind::relu) return true;
  constexpr float kMost = 255.0F;
  return activation.kind == graph::ActivationKind::clip && activation.alpha == 0.0F &&
         result.quantization->scales[0] * kMost <= activation.beta * 1.0001F;
}

/// The activation of values that are counted in units of the result's scale.
graph::Activation in_units(graph::Activation activation, float unit) {
  if (activation.kind == graph::ActivationKind::clip) {
    activation.alpha /= unit;
    activation.beta /= unit;
  }
  return activation;
}

/// Scales, zero points and post-ops of a quantized convolution. False if the library cannot.
bool set_integers(const Task& task, const std::vector<float>& weight_scales,
                  dnnl::primitive_attr& attributes) {
  const auto& in = *task.inputs[kImage].quantization;
  const auto& out = *task.outputs[0].quantization;
  const auto& activation = task.node.activation;
  const bool real = is_real_activation(activation);
  const float unit = real ? 1.0F : out.scales[0];  // what post-ops count in
  std::vector<float> scales;
  for (const float scale : weight_scales) scales.push_back(in.scales[0] * scale / unit);
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
    if (!append_activation(post_ops, in_units(activation, unit))) return false;
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

bool is_quantized(const Task& task) {
  const Operand& weights = task.inputs[kWeights];
  return is_byte(task.inputs[kImage].dtype) && is_byte(task.outputs[0].dtype) &&
         one_scale(task.inputs[kImage]) && one_scale(task.outputs[0]) &&
         weights.dtype == DType::i8 && weights.quantization &&
         all_zero(weights.quantization->zero_points) &&
         (!task.adds_last_input || one_scale(task.inputs.back()));
}

bool is_float(const Task& task) {
  const auto float_or_absent = [](const Operand& operand) {
    return !operand.present || operand.dtype == DType::f32;
  };
  return std::ranges::all_of(task.inputs, float_or_absent) && task.outputs[0].dtype == DType::f32;
}

dnnl::convolution_forward::primitive_desc describe(const Task& task, const Conv& conv,
                                                   dnnl::algorithm algorithm,
                                                   const dnnl::primitive_attr& attributes) {
  const auto source = image_desc(task.inputs[kImage], conv.layout);
  const auto result = image_desc(task.outputs[0], conv.layout);
  const auto weights = any_layout(
      weights_desc(task.inputs[kWeights], conv, data_type(task.inputs[kWeights].dtype).value()));
  const auto pads = graph::resolve_padding(
      conv.window, graph::spatial_extents(task.inputs[kImage].shape, conv.layout));
  memory::dims dilations(conv.window.dilations);
  for (auto& dilation : dilations) --dilation;  // the library counts the holes
  const memory::desc bias({result.dims()[1]}, memory::data_type::f32, memory::format_tag::x);
  const dnnl::convolution_forward::desc description(
      dnnl::prop_kind::forward_inference, algorithm, source, weights,
      has_bias(task) ? bias : memory::desc(), result, conv.window.strides, dilations, pads.begin,
      pads.end);
  return {description, attributes, cpu()};
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

KernelPtr make_convolution(const Task& task, const Conv& conv, dnnl::algorithm algorithm) {
  const Operand& weights = task.inputs[kWeights];
  const bool quantized = is_quantized(task);
  if (!weights.constant || (!quantized && !is_float(task))) return nullptr;
  if (has_bias(task) && !task.inputs[kBias].constant) return nullptr;

  auto attribute = attributes();
  if (quantized) {
    if (!set_integers(task, weights.quantization->scales, attribute)) return nullptr;
  } else {
    dnnl::post_ops post_ops;
    if (task.adds_last_input) post_ops.append_sum(1.0F);
    if (!append_activation(post_ops, task.node.activation)) return nullptr;
    attribute.set_post_ops(post_ops);
  }
  const auto chosen = describe(task, conv, algorithm, attribute);
  if (is_slow(chosen.impl_info_str())) return nullptr;  // before weights are packed for nothing

  std::vector<std::pair<int, PackedWeight>> packed;
  packed.emplace_back(DNNL_ARG_WEIGHTS,
                      PackedWeight(weights.constant->bytes().data(),
                                   weights_desc(weights, conv, data_type(weights.dtype).value()),
                                   chosen.weights_desc()));
  if (has_bias(task)) {
    auto bias = real_bias(task.inputs[kBias], chosen.dst_desc().dims()[1]);
    if (quantized) {
      const auto& scales = weights.quantization->scales;
      for (std::size_t c = 0; c < bias.size(); ++c) {
        bias[c] /= task.inputs[kImage].quantization->scales[0] * scales[scales.size() == 1 ? 0 : c];
      }
    }
    packed.emplace_back(DNNL_ARG_BIAS,
                        PackedWeight(bias.data(), chosen.bias_desc(), chosen.bias_desc()));
  }
  const auto shared = task.adds_last_input ? std::optional(task.inputs.size() - 1) : std::nullopt;
  return primitive_kernel(chosen, dnnl::convolution_forward(chosen),
                          {{DNNL_ARG_SRC, Argument::Role::input, kImage, chosen.src_desc()},
                           {DNNL_ARG_DST, Argument::Role::output, 0, chosen.dst_desc()}},
                          std::move(packed), shared);
}

}  // namespace fleetfit::engine::onednn
