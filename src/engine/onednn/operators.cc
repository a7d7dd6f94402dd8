// All that oneDNN does beside convolutions: functions element by element, matrix products,
// poolings, changes of format, and tensors joined along their channels.
#include <algorithm>
#include <array>
#include <optional>

#include "engine/onednn/onednn.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using graph::ElementwiseKind;
using graph::Layout;

// --- Functions element by element

std::optional<algorithm> algorithm_of(ElementwiseKind kind) {
  switch (kind) {
    case ElementwiseKind::add:
      return algorithm::binary_add;
    case ElementwiseKind::sub:
      return algorithm::binary_sub;
    case ElementwiseKind::mul:
      return algorithm::binary_mul;
    case ElementwiseKind::div:
      return algorithm::binary_div;
    case ElementwiseKind::min:
      return algorithm::binary_min;
    case ElementwiseKind::max:
      return algorithm::binary_max;
    default:
      return std::nullopt;
  }
}

memory::desc desc_of(const Operand& operand) {
  return operand.format == Format::blocked ? image_desc(operand, Layout::nchw)
                                           : plain_desc(operand);
}

KernelPtr make_activation(const Task& task, const graph::Activate& activate) {
  if (!is_real(task.inputs[0]) || !is_real(task.outputs[0])) return nullptr;
  dnnl::post_ops steps;  // the first of them is the primitive, the rest its post-ops
  if (!append_activation(steps, activate.function) ||
      !append_activation(steps, task.node.activation))
    return nullptr;
  float scale = 1;
  float alpha = 0;
  float beta = 0;
  algorithm first = algorithm::undef;
  steps.get_params_eltwise(0, scale, first, alpha, beta);
  if (scale != 1) return nullptr;
  dnnl::post_ops rest;
  for (int i = 1; i < steps.len(); ++i) {
    algorithm kind = algorithm::undef;
    float a = 0;
    float b = 0;
    steps.get_params_eltwise(i, scale, kind, a, b);
    rest.append_eltwise(scale, kind, a, b);
  }
  const auto desc = desc_of(task.inputs[0]);
  const dnnl::eltwise_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, first, desc, alpha, beta}, attributes(rest), cpu());
  return primitive_kernel(chosen, dnnl::eltwise_forward(chosen), {{DNNL_ARG_SRC, 0, desc}}, desc);
}

KernelPtr make_elementwise(const Task& task, const graph::Elementwise& op) {
  const auto kind = algorithm_of(op.kind);
  if (!kind || task.inputs.size() != 2 || task.inputs[0].shape != task.outputs[0].shape)
    return nullptr;
  for (const Operand& input : task.inputs) {
    if (!is_real(input) || input.constant || input.shape.size() != task.outputs[0].shape.size())
      return nullptr;
  }
  if (!is_real(task.outputs[0])) return nullptr;
  dnnl::post_ops post_ops;
  if (!append_activation(post_ops, task.node.activation)) return nullptr;
  const auto first = desc_of(task.inputs[0]);
  const auto second = desc_of(task.inputs[1]);
  const auto result = desc_of(task.outputs[0]);
  const dnnl::binary::primitive_desc chosen({*kind, first, second, result}, attributes(post_ops),
                                            cpu());
  return primitive_kernel(chosen, dnnl::binary(chosen),
                          {{DNNL_ARG_SRC_0, 0, first}, {DNNL_ARG_SRC_1, 1, second}}, result);
}

// --- Matrix products

/// Whether the operand is one row of that many elements, added to every row.
bool is_row(const Operand& operand, std::int64_t width) {
  return graph::elements(operand.shape) == width &&
         (width == 1 || (!operand.shape.empty() && operand.shape.back() == width));
}

/// The matrix with its last two dimensions swapped.
memory::desc transposed(const Operand& operand) {
  const auto desc = plain_desc(operand);
  std::vector<int> order(operand.shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return desc.permute_axes(order);
}

/// A constant second matrix: an inner product with packed weights.
KernelPtr make_gemm(const Task& task, const graph::Gemm& gemm) {
  const Operand& a = task.inputs[0];
  const Operand& b = task.inputs[1];
  if (a.quantization) return make_quantized_gemm(task, gemm);
  if (!is_real(a) || !is_real(b) || !b.constant || gemm.alpha != 1 || gemm.trans_a ||
      !is_real(task.outputs[0])) {
    return nullptr;
  }
  const std::int64_t out = gemm.trans_b ? b.shape[0] : b.shape[1];
  const std::int64_t in = gemm.trans_b ? b.shape[1] : b.shape[0];
  const std::int64_t rows = graph::elements(a.shape) / in;
  const bool has_bias = has_input(task, 2);
  if (has_bias && (gemm.beta != 1 || !task.inputs[2].constant || !is_row(task.inputs[2], out))) {
    return nullptr;
  }
  dnnl::post_ops post_ops;
  if (!append_activation(post_ops, task.node.activation)) return nullptr;
  constexpr auto kFloat = memory::data_type::f32;
  const memory::desc source({rows, in}, kFloat, memory::format_tag::ab);
  const memory::desc result({rows, out}, kFloat, memory::format_tag::ab);
  const memory::desc weights({out, in}, kFloat,
                             gemm.trans_b ? memory::format_tag::ab : memory::format_tag::ba);
  const memory::desc bias({out}, kFloat, memory::format_tag::a);
  const dnnl::inner_product_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, source,
       memory::desc({out, in}, kFloat, memory::format_tag::any), has_bias ? bias : memory::desc(),
       result},
      attributes(post_ops), cpu());
  std::vector<std::pair<int, PackedWeight>> packed;
  packed.emplace_back(DNNL_ARG_WEIGHTS,
                      PackedWeight(b.constant->bytes().data(), weights, chosen.weights_desc()));
  if (has_bias) {
    packed.emplace_back(DNNL_ARG_BIAS,
                        PackedWeight(task.inputs[2].constant->bytes().data(), bias, bias));
  }
  return primitive_kernel(chosen, dnnl::inner_product_forward(chosen), {{DNNL_ARG_SRC, 0, source}},
                          result, std::move(packed));
}

KernelPtr make_matmul(const Task& task, const graph::MatMul& matmul) {
  const Operand& a = task.inputs[0];
  const Operand& b = task.inputs[1];
  if (!is_real(a) || !is_real(b) || a.constant || !is_real(task.outputs[0])) return nullptr;
  if (b.constant && b.shape.size() == 2 && !matmul.trans_a) {
    Task dense = task;
    dense.node.op = graph::Gemm{.trans_b = matmul.trans_b};
    return make_gemm(dense, std::get<graph::Gemm>(dense.node.op));
  }
  if (b.constant || a.shape.size() != b.shape.size() || a.shape.size() < 2 ||
      a.shape.size() != task.outputs[0].shape.size()) {
    return nullptr;
  }
  dnnl::post_ops post_ops;
  if (!append_activation(post_ops, task.node.activation)) return nullptr;
  const auto left = matmul.trans_a ? transposed(a) : plain_desc(a);
  const auto right = matmul.trans_b ? transposed(b) : plain_desc(b);
  const auto result = plain_desc(task.outputs[0]);
  const dnnl::matmul::primitive_desc chosen({left, right, result}, attributes(post_ops), cpu());
  return primitive_kernel(chosen, dnnl::matmul(chosen),
                          {{DNNL_ARG_SRC, 0, left}, {DNNL_ARG_WEIGHTS, 1, right}}, result);
}

// --- Poolings

/// A window with its padding worked out, as the library takes it.
struct PoolWindow {
  memory::dims kernel;
  memory::dims strides;
  memory::dims dilations;
  memory::dims begin;
  memory::dims end;
};

KernelPtr make_pooling(const Task& task, Layout layout, algorithm kind, const PoolWindow& window) {
  const Operand& image = task.inputs[0];
  if (!data_type(image.dtype) || image.dtype != task.outputs[0].dtype ||
      image.quantization != task.outputs[0].quantization) {
    return nullptr;
  }
  // The average of stored numbers is the stored number of the average; padding would count as zeros
  // that are not stored as zeros.
  dnnl::post_ops post_ops;
  if (!append_activation(post_ops, task.node.activation)) return nullptr;
  if (image.quantization && task.node.activation) return nullptr;
  const auto source = image_desc(image, layout);
  const auto result = image_desc(task.outputs[0], layout);
  const dnnl::pooling_v2_forward::primitive_desc chosen(
      {dnnl::prop_kind::forward_inference, kind, source, result, window.strides, window.kernel,
       window.dilations, window.begin, window.end},
      attributes(post_ops), cpu());
  return primitive_kernel(chosen, dnnl::pooling_v2_forward(chosen), {{DNNL_ARG_SRC, 0, source}},
                          result);
}

/// Padding that makes the last window fit: more than given where extents were rounded up.
memory::dims padding_end(const PoolWindow& window, const graph::Ints& in, const graph::Ints& out) {
  memory::dims end(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto reach = (window.kernel[i] - 1) * (window.dilations[i] + 1) + 1;
    end[i] = (out[i] - 1) * window.strides[i] + reach - in[i] - window.begin[i];
  }
  return end;
}

KernelPtr make_pool(const Task& task, const graph::Pool& pool) {
  if (task.outputs.size() > 1) return nullptr;  // with the indices of the largest
  const auto in = graph::spatial_extents(task.inputs[0].shape, pool.layout);
  const auto out = graph::spatial_extents(task.outputs[0].shape, pool.layout);
  const auto pads = graph::resolve_padding(pool.window, in);
  PoolWindow window{pool.window.kernel, pool.window.strides, pool.window.dilations, pads.begin, {}};
  for (auto& dilation : window.dilations) --dilation;
  window.end = padding_end(window, in, out);
  const auto is_positive = [](std::int64_t value) { return value > 0; };
  const bool padded = std::ranges::any_of(window.begin, is_positive) ||
                      std::ranges::any_of(window.end, is_positive);
  if (std::ranges::any_of(window.end, [](std::int64_t value) { return value < 0; })) return nullptr;
  if (pool.kind == graph::PoolKind::max)
    return make_pooling(task, pool.layout, algorithm::pooling_max, window);
  if (padded && pool.count_include_pad && (window.end != pads.end || task.inputs[0].quantization))
    return nullptr;
  return make_pooling(task, pool.layout,
                      pool.count_include_pad ? algorithm::pooling_avg_include_padding
                                             : algorithm::pooling_avg_exclude_padding,
                      window);
}

KernelPtr make_global_pool(const Task& task, const graph::GlobalPool& pool) {
  const auto extents = graph::spatial_extents(task.inputs[0].shape, pool.layout);
  const memory::dims zeros(extents.size(), 0);
  return make_pooling(
      task, pool.layout,
      pool.kind == graph::PoolKind::max ? algorithm::pooling_max
                                        : algorithm::pooling_avg_exclude_padding,
      {.kernel = extents, .strides = extents, .dilations = zeros, .begin = zeros, .end = zeros});
}

// --- Movements

KernelPtr make_reorder(const Task& task) {
  const Operand& from = task.inputs[0];
  const Operand& to = task.outputs[0];
  if (from.constant || !data_type(from.dtype) || from.format == to.format) return nullptr;
  const auto source = image_desc(from, Layout::nchw);
  const auto result = image_desc(to, Layout::nchw);
  const dnnl::reorder::primitive_desc chosen(cpu(), source, cpu(), result, attributes());
  return primitive_kernel(chosen, dnnl::reorder(chosen), {{DNNL_ARG_FROM, 0, source}}, result);
}

KernelPtr make_concat(const Task& task, const graph::Concat& concat) {
  if (task.node.activation || task.outputs[0].format != Format::blocked) return nullptr;
  std::vector<memory::desc> sources;
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (task.inputs[i].constant) return nullptr;
    sources.push_back(image_desc(task.inputs[i], Layout::nchw));
    arguments.push_back({DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), i, sources.back()});
  }
  const auto result = image_desc(task.outputs[0], Layout::nchw);
  const dnnl::concat::primitive_desc chosen(result, static_cast<int>(concat.axis), sources, cpu(),
                                            attributes());
  return primitive_kernel(chosen, dnnl::concat(chosen), std::move(arguments), result);
}

}  // namespace

std::span<const KernelEntry> plain_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Activate, make_activation>(), entry<graph::Elementwise, make_elementwise>(),
      entry<graph::Gemm, make_gemm>(),           entry<graph::MatMul, make_matmul>(),
      entry<graph::Pool, make_pool>(),           entry<graph::GlobalPool, make_global_pool>(),
      entry<graph::Identity>(make_reorder),      entry<graph::Concat, make_concat>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::onednn
