#include <algorithm>
#include <array>

#include "engine/onednn/onednn.h"
#include "fleetfit/graph/shape_inference.h"

namespace fleetfit::engine::onednn {
namespace {

using dnnl::algorithm;
using dnnl::memory;

/// A window with its padding worked out, as the library takes it.
struct PoolWindow {
  memory::dims kernel;
  memory::dims strides;
  memory::dims dilations;
  memory::dims begin;
  memory::dims end;
};

KernelPtr make(const Task& task, graph::Layout layout, algorithm kind, const PoolWindow& window) {
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
  return primitive_kernel(chosen, dnnl::pooling_v2_forward(chosen),
                          {{DNNL_ARG_SRC, Argument::Role::input, 0, source},
                           {DNNL_ARG_DST, Argument::Role::output, 0, result}});
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
    return make(task, pool.layout, algorithm::pooling_max, window);
  if (padded && pool.count_include_pad && (window.end != pads.end || task.inputs[0].quantization))
    return nullptr;
  return make(task, pool.layout,
              pool.count_include_pad ? algorithm::pooling_avg_include_padding
                                     : algorithm::pooling_avg_exclude_padding,
              window);
}

KernelPtr make_global_pool(const Task& task, const graph::GlobalPool& pool) {
  const auto extents = graph::spatial_extents(task.inputs[0].shape, pool.layout);
  const memory::dims zeros(extents.size(), 0);
  return make(
      task, pool.layout,
      pool.kind == graph::PoolKind::max ? algorithm::pooling_max
                                        : algorithm::pooling_avg_exclude_padding,
      {.kernel = extents, .strides = extents, .dilations = zeros, .begin = zeros, .end = zeros});
}

}  // namespace

std::span<const KernelEntry> pooling_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Pool, make_pool>(),
      entry<graph::GlobalPool, make_global_pool>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::onednn
