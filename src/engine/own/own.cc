#include "engine/own/own.h"

#include <algorithm>

#include "engine/libraries.h"
#include "engine/own/quantized.h"

namespace fleetfit::engine {
namespace own {
namespace {

using graph::Overloaded;

bool is_plain(const Operand& operand) {
  return !operand.present ||
         (operand.format == Format::plain && graph::elements(operand.shape) > 0);
}

/// Whether results may be copies of stored numbers: all of them mean the same.
bool keeps_stored(const Task& task) {
  const auto& common = task.inputs[0].quantization;
  if (common && common->axis) return false;
  const auto fits = [&](const Operand& operand) {
    return !operand.quantization || operand.quantization == common;
  };
  const bool joins = std::holds_alternative<graph::Concat>(task.node.op) ||
                     std::holds_alternative<graph::Stack>(task.node.op);
  return std::ranges::all_of(task.outputs, fits) &&
         std::ranges::all_of(task.inputs, [&](const Operand& operand) {
           return !operand.present || (joins ? operand.quantization == common : fits(operand));
         });
}

KernelPtr make_movement(const Task& task) {
  if (task.inputs.empty() || !task.inputs[0].present || !keeps_stored(task)) return nullptr;
  return std::visit(Overloaded{
                        [&](const graph::ChannelShuffle& op) {
                          return is_joined_shuffle(task) ? make_joined_shuffle(task, op)
                                                         : make_move(task);
                        },
                        [&](const graph::Pad& op) { return make_pad(task, op); },
                        [&](const graph::SpaceToBatch&) { return make_space_to_batch(task); },
                        [&](const graph::BatchToSpace&) { return make_batch_to_space(task); },
                        [&](const graph::Gather& op) { return make_gather(task, op); },
                        [&](const auto&) { return make_move(task); },
                    },
                    task.node.op);
}

KernelPtr make_resize(const Task& task, const graph::Resize& op) {
  if (op.mode != graph::ResizeMode::nearest) return make_smooth_resize(task, op);
  return keeps_stored(task) ? make_nearest_resize(task, op) : nullptr;
}

/// Kernels that know nothing of the node's activation.
KernelPtr make_without_activation(const Task& task) {
  return std::visit(
      Overloaded{
          [&](const graph::Where&) { return make_where(task); },
          [&](const graph::PRelu&) { return make_prelu(task); },
          [&](const graph::Cast&) { return make_cast(task); },
          [&](const graph::Softmax& op) { return make_softmax(task, op); },
          [&](const graph::LayerNorm& op) { return make_layer_norm(task, op); },
          [&](const graph::InstanceNorm& op) { return make_instance_norm(task, op); },
          [&](const graph::BatchNorm& op) { return make_batch_norm(task, op); },
          [&](const graph::LpNormalization& op) { return make_lp_normalization(task, op); },
          [&](const graph::Lrn& op) { return make_lrn(task, op); },
          [&](const graph::Reduce& op) { return make_reduce(task, op); },
          [&](const graph::GlobalPool& op) { return make_global_pool(task, op); },
          [&](const graph::ArgExtreme& op) { return make_arg_extreme(task, op); },
          [&](const graph::Gemm& op) { return make_gemm(task, op); },
          [&](const graph::MatMul& op) { return make_matmul(task, op); },
          [&](const graph::MultiHeadAttention& op) { return make_attention(task, op); },
          [&](const graph::Conv& op) { return make_convolution(task, op); },
          [&](const graph::ConvTranspose& op) { return make_transposed_convolution(task, op); },
          [&](const graph::TopK& op) { return make_top_k(task, op); },
          [&](const graph::Pool& op) { return make_pool(task, op); },
          [&](const graph::Resize& op) { return make_resize(task, op); },
          [&](const auto&) { return make_movement(task); },
      },
      task.node.op);
}

KernelPtr make_with_activation(const Task& task) {
  Task inner = task;
  inner.node.activation = {};
  return activated(make_without_activation(inner), task.node.activation, task.outputs[0]);
}

/// Tasks on tensors that stand for themselves.
KernelPtr make_on_plain(const Task& task) {
  return std::visit(Overloaded{
                        [&](const graph::Elementwise& op) { return make_elementwise(task, op); },
                        [&](const graph::Activate& op) { return make_activate(task, op); },
                        [&](const graph::Unary& op) { return make_unary(task, op); },
                        [&](const auto&) { return make_with_activation(task); },
                    },
                    task.node.op);
}

/// Fast ways for quantized tensors.
KernelPtr make_on_stored(const Task& task) {
  return std::visit(
      Overloaded{
          [&](const graph::Requantize&) { return make_requantize(task); },
          [&](const graph::Elementwise& op) { return make_quantized_elementwise(task, op); },
          [&](const graph::Activate&) { return make_quantized_table(task); },
          [&](const graph::Unary&) { return make_quantized_table(task); },
          [&](const graph::Cast&) { return KernelPtr(); },
          [&](const graph::ArgExtreme& op) { return make_arg_extreme(task, op); },
          [&](const graph::Concat& op) {
            return keeps_stored(task) ? make_movement(task) : make_quantized_concat(task, op);
          },
          [&](const graph::Resize& op) {
            const bool copies = op.mode == graph::ResizeMode::nearest && keeps_stored(task);
            return copies ? make_nearest_resize(task, op) : KernelPtr();
          },
          [&](const auto&) { return make_movement(task); },
      },
      task.node.op);
}

KernelPtr make_kernel(const Task& task) {
  // Their operands say how numbers are stored, whatever else is known of the tensors.
  if (const auto* op = std::get_if<graph::QuantizeLinear>(&task.node.op)) {
    return make_quantize_linear(task, *op);
  }
  if (const auto* op = std::get_if<graph::DequantizeLinear>(&task.node.op)) {
    return make_dequantize_linear(task, *op);
  }
  if (!touches_quantized(task)) return make_on_plain(task);
  const bool applies = std::holds_alternative<graph::Elementwise>(task.node.op) ||
                       std::holds_alternative<graph::Activate>(task.node.op) ||
                       std::holds_alternative<graph::Unary>(task.node.op);
  if (applies || !task.node.activation) {
    if (auto kernel = make_on_stored(task)) return kernel;
  }
  if (std::holds_alternative<graph::Cast>(task.node.op)) return nullptr;
  return make_on_reals(task, make_on_plain);
}

}  // namespace
}  // namespace own

KernelPtr make_own_kernel(const Task& task) {
  if (!std::ranges::all_of(task.inputs, own::is_plain) ||
      !std::ranges::all_of(task.outputs, own::is_plain)) {
    return nullptr;
  }
  const bool can_add = std::holds_alternative<graph::Conv>(task.node.op) ||
                       std::holds_alternative<graph::ConvTranspose>(task.node.op);
  if (task.outputs.empty() || (task.adds_last_input && !can_add)) return nullptr;
  return own::make_kernel(task);
}

}  // namespace fleetfit::engine
