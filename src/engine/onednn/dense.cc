// Matrix products.
#include <algorithm>
#include <array>

#include "engine/onednn/onednn.h"

namespace fleetfit::engine::onednn {
namespace {

using dnnl::memory;
using graph::DType;

bool is_float(const Operand& operand) {
  return !operand.present || (operand.dtype == DType::f32 && !operand.quantization);
}

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
  if (!is_float(a) || !is_float(b) || !b.constant || gemm.alpha != 1 || gemm.trans_a ||
      !is_float(task.outputs[0])) {
    return nullptr;
  }
  const std::int64_t out = gemm.trans_b ? b.shape[0] : b.shape[1];
  const std::int64_t in = gemm.trans_b ? b.shape[1] : b.shape[0];
  const std::int64_t rows = graph::elements(a.shape) / in;
  const bool has_bias = task.inputs.size() > 2 && task.inputs[2].present;
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
  return primitive_kernel(chosen, dnnl::inner_product_forward(chosen),
                          {{DNNL_ARG_SRC, Argument::Role::input, 0, source},
                           {DNNL_ARG_DST, Argument::Role::output, 0, result}},
                          std::move(packed));
}

KernelPtr make_matmul(const Task& task, const graph::MatMul& matmul) {
  const Operand& a = task.inputs[0];
  const Operand& b = task.inputs[1];
  if (!is_float(a) || !is_float(b) || a.constant || !is_float(task.outputs[0])) return nullptr;
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
                          {{DNNL_ARG_SRC, Argument::Role::input, 0, left},
                           {DNNL_ARG_WEIGHTS, Argument::Role::input, 1, right},
                           {DNNL_ARG_DST, Argument::Role::output, 0, result}});
}

}  // namespace

std::span<const KernelEntry> dense_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Gemm, make_gemm>(),
      entry<graph::MatMul, make_matmul>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::onednn
