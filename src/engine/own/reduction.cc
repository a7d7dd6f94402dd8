// Reductions, global pooling, and the choice of extremes.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "engine/own/copies.h"
#include "engine/own/own.h"

namespace fleetfit::engine::own {
namespace {

using graph::ReduceKind;

/// The last step of a reduction of `count` elements.
float finished(ReduceKind kind, float value, std::int64_t count) {
  switch (kind) {
    case ReduceKind::mean:
      return value / static_cast<float>(count);
    case ReduceKind::l2:
      return std::sqrt(value);
    case ReduceKind::log_sum:
      return std::log(value);
    default:
      return value;
  }
}

float log_sum_exp(const float* x, std::int64_t count) {
  const float highest = max_of_row(x, count);
  if (std::isinf(highest)) return highest;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(x[i] - highest);
  return highest + static_cast<float>(std::log(sum));
}

float reduced_row(ReduceKind kind, const float* x, std::int64_t count) {
  if (kind == ReduceKind::log_sum_exp) return log_sum_exp(x, count);
  return finished(kind, reduce_row(kind, x, count), count);
}

void reduce_rows(ReduceKind kind, const float* x, float* out, std::int64_t rows,
                 std::int64_t count) {
  parallel_each(rows, count,
                [&](std::int64_t i) { out[i] = reduced_row(kind, x + i * count, count); });
}

/// Over the middle one of three dimensions.
void reduce_columns(ReduceKind kind, const Along& a, const float* x, float* out) {
  constexpr std::int64_t kWidth = 128;
  const std::int64_t parts = (a.inner + kWidth - 1) / kWidth;
  parallel_each(a.outer * parts, a.extent * std::min(kWidth, a.inner), [&](std::int64_t i) {
    const std::int64_t first = i % parts * kWidth;
    const std::int64_t width = std::min(kWidth, a.inner - first);
    const float* from = x + i / parts * a.extent * a.inner + first;
    float* to = out + i / parts * a.inner + first;
    start_reduction(kind, from, to, width);
    for (std::int64_t k = 1; k < a.extent; ++k) {
      continue_reduction(kind, from + k * a.inner, to, width);
    }
    for (std::int64_t j = 0; j < width; ++j) to[j] = finished(kind, to[j], a.extent);
  });
}

std::optional<std::vector<bool>> chosen_axes(const Ints& axes, std::size_t rank) {
  std::vector<bool> chosen(rank, axes.empty());
  for (const auto axis : axes) {
    const auto index = resolve_axis(axis, rank);
    if (!index) return std::nullopt;
    chosen[*index] = true;
  }
  return chosen;
}

/// The chosen axes as the middle of three dimensions, if no other is among them.
std::optional<Along> as_middle(const Shape& shape, const std::vector<bool>& chosen) {
  Along a;
  enum class Part { before, within, behind } part = Part::before;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (chosen[i]) {
      if (part == Part::behind) return std::nullopt;
      part = Part::within;
      a.extent *= shape[i];
    } else if (part == Part::before) {
      a.outer *= shape[i];
    } else {
      part = Part::behind;
      a.inner *= shape[i];
    }
  }
  return a;
}

/// Brings the chosen axes to the end.
Ints chosen_last(const std::vector<bool>& chosen) {
  Ints perm = counting(std::ssize(chosen));
  std::ranges::stable_partition(
      perm, [&](std::int64_t axis) { return !chosen[static_cast<std::size_t>(axis)]; });
  return perm;
}

KernelPtr reduce_any(const Task& task, ReduceKind kind, const std::vector<bool>& chosen) {
  const Shape& shape = task.inputs[0].shape;
  const std::int64_t rows = graph::elements(task.outputs[0].shape);
  const std::int64_t count = graph::elements(shape) / rows;
  const auto middle = as_middle(shape, chosen);
  if (middle && middle->inner == 1) {
    return function_kernel(task, "reduce rows", [=](const Memory& memory) {
      reduce_rows(kind, memory.in<float>(), memory.out<float>(), rows, count);
    });
  }
  if (middle && kind != ReduceKind::log_sum_exp) {
    return function_kernel(task, "reduce columns", [=, a = *middle](const Memory& memory) {
      reduce_columns(kind, a, memory.in<float>(), memory.out<float>());
    });
  }
  StridedCopy bring(permuted_dims(shape, chosen_last(chosen)), sizeof(float));
  return function_kernel(
      task, "transpose, reduce rows",
      [=, bring = std::move(bring)](const Memory& memory) {
        bring.run(memory.inputs[0], memory.scratch);
        reduce_rows(kind, reinterpret_cast<const float*>(memory.scratch), memory.out<float>(), rows,
                    count);
      },
      storage_bytes(task.inputs[0]));
}

/// NaN counts as the largest number.
template <class T>
bool ranks_before(T a, T b, bool largest) {
  if (a != a || b != b) return largest ? (a != a && b == b) : (a == a && b != b);
  return largest ? a > b : a < b;
}

template <class T, class Index>
KernelPtr choose_extreme(const Task& task, const graph::ArgExtreme& op, const Along& a) {
  return function_kernel(task, "arg extreme", [=](const Memory& memory) {
    parallel_each(a.outer * a.inner, a.extent * 2, [&](std::int64_t i) {
      const T* x = memory.in<T>() + i / a.inner * a.extent * a.inner + i % a.inner;
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < a.extent; ++k) {
        const T v = x[k * a.inner];
        const T so_far = x[best * a.inner];
        const bool worse = ranks_before(so_far, v, !op.smallest);
        if (ranks_before(v, so_far, !op.smallest) || (op.select_last && !worse)) best = k;
      }
      memory.out<Index>()[i] = static_cast<Index>(best);
    });
  });
}

template <class T>
KernelPtr choose_extreme_of(const Task& task, const graph::ArgExtreme& op, const Along& a) {
  if (task.outputs[0].dtype == DType::i64) return choose_extreme<T, std::int64_t>(task, op, a);
  if (task.outputs[0].dtype == DType::i32) return choose_extreme<T, std::int32_t>(task, op, a);
  return nullptr;
}

KernelPtr make_reduce(const Task& task, const graph::Reduce& op) {
  if (!all_real(task)) return nullptr;
  const auto chosen = chosen_axes(op.axes, task.inputs[0].shape.size());
  return chosen ? reduce_any(task, op.kind, *chosen) : nullptr;
}

KernelPtr make_global_pool(const Task& task, const graph::GlobalPool& op) {
  if (!all_real(task) || task.outputs.size() != 1) return nullptr;
  std::vector<bool> spatial(task.inputs[0].shape.size(), true);
  spatial[0] = false;
  spatial[op.layout == graph::Layout::nchw ? 1 : spatial.size() - 1] = false;
  return reduce_any(task, op.kind == graph::PoolKind::max ? ReduceKind::max : ReduceKind::mean,
                    spatial);
}

KernelPtr make_arg_extreme(const Task& task, const graph::ArgExtreme& op) {
  const Operand& x = task.inputs[0];
  const auto axis = resolve_axis(op.axis, x.shape.size());
  if (!axis || (x.quantization && !is_quantized(x)) || task.outputs[0].quantization) return nullptr;
  const Along a = along(x.shape, *axis);
  switch (x.dtype) {
    case DType::f32:
      return choose_extreme_of<float>(task, op, a);
    case DType::i8:
      return choose_extreme_of<std::int8_t>(task, op, a);
    case DType::u8:
      return choose_extreme_of<std::uint8_t>(task, op, a);
    case DType::i32:
      return choose_extreme_of<std::int32_t>(task, op, a);
    case DType::i64:
      return choose_extreme_of<std::int64_t>(task, op, a);
    default:
      return nullptr;
  }
}

KernelPtr make_top_k(const Task& task, const graph::TopK& op) {
  const Operand& x = task.inputs[0];
  const auto axis = resolve_axis(op.axis, x.shape.size());
  const bool wants_indices = task.outputs.size() > 1 && task.outputs[1].present;
  if (!axis || !is_real(x) || !task.outputs[0].present || !is_real(task.outputs[0]) ||
      (wants_indices && task.outputs[1].dtype != DType::i64)) {
    return nullptr;
  }
  const Along a = along(x.shape, *axis);
  const std::int64_t k = task.outputs[0].shape[*axis];
  const bool largest = op.largest;
  return function_kernel(
      task, "top k",
      [=](const Memory& memory) {
        parallel_each(a.outer * a.inner, a.extent * 8, [&](std::int64_t i) {
          const std::int64_t plane = i / a.inner;
          const float* run = memory.in<float>() + plane * a.extent * a.inner + i % a.inner;
          auto* order = reinterpret_cast<std::int64_t*>(memory.scratch) + i * a.extent;
          std::iota(order, order + a.extent, std::int64_t{0});
          std::partial_sort(order, order + k, order + a.extent,
                            [&](std::int64_t one, std::int64_t other) {
                              const float v = run[one * a.inner];
                              const float w = run[other * a.inner];
                              if (ranks_before(v, w, largest)) return true;
                              return !ranks_before(w, v, largest) && one < other;
                            });
          const std::int64_t to = plane * k * a.inner + i % a.inner;
          for (std::int64_t j = 0; j < k; ++j) {
            memory.out<float>()[to + j * a.inner] = run[order[j] * a.inner];
            if (wants_indices) {
              memory.out<std::int64_t>(1)[to + j * a.inner] = order[j];
            }
          }
        });
      },
      static_cast<std::size_t>(graph::elements(x.shape)) * sizeof(std::int64_t));
}

}  // namespace

std::span<const OwnKernels> reduction_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Reduce, make_reduce>(),
      kernels<graph::GlobalPool, make_global_pool>(),
      kernels<graph::ArgExtreme, make_arg_extreme>(
          {.stored = make_of<graph::ArgExtreme, make_arg_extreme>}),
      kernels<graph::TopK, make_top_k>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
