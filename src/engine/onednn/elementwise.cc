// Activations on their own, and two tensors combined element by element.
#include <algorithm>
#include <array>
#include <optional>

#include "engine/onednn/onednn.h"

namespace fleetfit::engine::onednn {
namespace {

using dnnl::algorithm;
using graph::DType;
using graph::ElementwiseKind;
using graph::Layout;

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

dnnl::memory::desc desc_of(const Operand& operand) {
  return operand.format == Format::blocked ? image_desc(operand, Layout::nchw)
                                           : plain_desc(operand);
}

bool is_plain_float(const Operand& operand) {
  return operand.dtype == DType::f32 && !operand.quantization;
}

KernelPtr make_activation(const Task& task, const graph::Activate& activate) {
  if (!is_plain_float(task.inputs[0]) || !is_plain_float(task.outputs[0])) return nullptr;
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
  return primitive_kernel(chosen, dnnl::eltwise_forward(chosen),
                          {{DNNL_ARG_SRC, Argument::Role::input, 0, desc},
                           {DNNL_ARG_DST, Argument::Role::output, 0, desc}});
}

KernelPtr make_elementwise(const Task& task, const graph::Elementwise& op) {
  const auto kind = algorithm_of(op.kind);
  if (!kind || task.inputs.size() != 2 || task.inputs[0].shape != task.outputs[0].shape)
    return nullptr;
  for (const Operand& input : task.inputs) {
    if (!is_plain_float(input) || input.constant ||
        input.shape.size() != task.outputs[0].shape.size())
      return nullptr;
  }
  if (!is_plain_float(task.outputs[0])) return nullptr;
  dnnl::post_ops post_ops;
  if (!append_activation(post_ops, task.node.activation)) return nullptr;
  const auto first = desc_of(task.inputs[0]);
  const auto second = desc_of(task.inputs[1]);
  const auto result = desc_of(task.outputs[0]);
  const dnnl::binary::primitive_desc chosen({*kind, first, second, result}, attributes(post_ops),
                                            cpu());
  return primitive_kernel(chosen, dnnl::binary(chosen),
                          {{DNNL_ARG_SRC_0, Argument::Role::input, 0, first},
                           {DNNL_ARG_SRC_1, Argument::Role::input, 1, second},
                           {DNNL_ARG_DST, Argument::Role::output, 0, result}});
}

}  // namespace

std::span<const KernelEntry> elementwise_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Activate, make_activation>(),
      entry<graph::Elementwise, make_elementwise>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::onednn
