// Softmax and normalizations.
#include <algorithm>
#include <array>
#include <cmath>

#include "engine/own/own.h"

namespace fleetfit::engine::own {
namespace {

void softmax_row(bool log, const float* x, float* out, std::int64_t count) {
  const float highest = max_of_row(x, count);
  const float sum = exponentials_of_row(x, highest, out, count);
  if (log) {
    normalize_row(x, highest + std::log(sum), 1.0F, out, count);
  } else {
    scale_row(out, 1.0F / sum, out, count);
  }
}

/// Mean, and one over the standard deviation.
struct Moments {
  float mean;
  float factor;
};

Moments moments_of(const float* x, std::int64_t count, float epsilon) {
  const auto n = static_cast<float>(count);
  const float mean = sum_of_row(x, count) / n;
  return {mean, 1.0F / std::sqrt(squares_of_row(x, mean, count) / n + epsilon)};
}

/// Neighbours of a channel that its response depends on, and where they lie.
struct Neighbours {
  std::int64_t below = 0;
  std::int64_t above = 0;
  std::int64_t channels = 0;
  Response response = {};
};

constexpr std::int64_t kSegment = 512;

/// Channels [first, first + count) of one pixel whose channels lie together.
void normalize_channels(const Neighbours& n, const float* pixel, float* out, std::int64_t first,
                        std::int64_t count) {
  float squares[kSegment];
  std::fill_n(squares, count, 0.0F);
  for (std::int64_t d = -n.below; d <= n.above; ++d) {
    const std::int64_t begin = std::max(first, -d);
    const std::int64_t end = std::min(first + count, n.channels - d);
    if (begin < end) add_squares_row(pixel + begin + d, squares + begin - first, end - begin);
  }
  response_row(n.response, pixel + first, squares, out + first, count);
}

/// Some pixels of one channel of an image whose pixels lie together.
void normalize_pixels(const Neighbours& n, const float* image, float* out, std::int64_t channel,
                      std::int64_t inner, std::int64_t first, std::int64_t count) {
  float squares[kSegment];
  std::fill_n(squares, count, 0.0F);
  const std::int64_t last = std::min(channel + n.above, n.channels - 1);
  for (std::int64_t c = std::max<std::int64_t>(0, channel - n.below); c <= last; ++c) {
    add_squares_row(image + c * inner + first, squares, count);
  }
  const std::int64_t at = channel * inner + first;
  response_row(n.response, image + at, squares, out + at, count);
}

/// Divides a run by its norm.
void divide_by_norm(std::int64_t p, const float* x, float* out, std::int64_t extent,
                    std::int64_t stride) {
  double norm = 0;
  for (std::int64_t k = 0; k < extent; ++k) {
    const double v = x[k * stride];
    norm += p == 1 ? std::abs(v) : v * v;
  }
  if (p != 1) norm = std::sqrt(norm);
  const auto factor = static_cast<float>(norm == 0 ? 1 : 1 / norm);
  for (std::int64_t k = 0; k < extent; ++k) out[k * stride] = x[k * stride] * factor;
}

/// A constant repeated to `count` elements if it is one; nothing if it has another number of them.
bool fills(const Operand& operand, std::int64_t count) {
  return !operand.present || graph::elements(operand.shape) == count;
}

KernelPtr make_softmax(const Task& task, const graph::Softmax& op) {
  if (!all_real(task)) return nullptr;
  const Shape shape = task.inputs[0].shape.empty() ? Shape{1} : task.inputs[0].shape;
  const auto axis = resolve_axis(op.axis, shape.size());
  if (!axis) return nullptr;
  Along a = along(shape, *axis);
  if (op.to_end) a = {a.outer, a.extent * a.inner, 1};
  const bool log = op.log;
  if (a.inner == 1) {
    return function_kernel(task, "softmax", [=](const Memory& memory) {
      parallel_each(a.outer, a.extent * 4, [&](std::int64_t i) {
        softmax_row(log, memory.in<float>() + i * a.extent, memory.out<float>() + i * a.extent,
                    a.extent);
      });
    });
  }
  const std::int64_t parts = (a.inner + kMostColumns - 1) / kMostColumns;
  return function_kernel(task, "softmax", [=](const Memory& memory) {
    parallel_each(a.outer * parts, a.extent * kMostColumns * 4, [&](std::int64_t i) {
      const std::int64_t first = i % parts * kMostColumns;
      const std::int64_t at = i / parts * a.extent * a.inner + first;
      const Columns columns{a.extent, a.inner, std::min(kMostColumns, a.inner - first)};
      const auto run = log ? log_softmax_columns : softmax_columns;
      run(columns, memory.in<float>() + at, memory.out<float>() + at);
    });
  });
}

KernelPtr make_layer_norm(const Task& task, const graph::LayerNorm& op) {
  const auto axis = resolve_axis(op.axis, task.inputs[0].shape.size());
  if (!all_real(task) || !axis || !task.outputs[0].present) return nullptr;
  const Along a = along(task.inputs[0].shape, *axis);
  const std::int64_t count = a.extent * a.inner;
  const bool shifts = has_input(task, 2);
  if (!fills(task.inputs[1], count) || (shifts && !fills(task.inputs[2], count))) return nullptr;
  const auto wants = [&](std::size_t i) {
    return i < task.outputs.size() && task.outputs[i].present;
  };
  const bool wants_mean = wants(1);
  const bool wants_factor = wants(2);
  const float epsilon = op.epsilon;
  return function_kernel(task, "layer norm", [=](const Memory& memory) {
    const float* shift = shifts ? memory.in<float>(2) : nullptr;
    parallel_each(a.outer, count * 3, [&](std::int64_t i) {
      const float* x = memory.in<float>() + i * count;
      float* out = memory.out<float>() + i * count;
      const Moments m = moments_of(x, count, epsilon);
      normalize_row(x, m.mean, m.factor, out, count);
      affine_row(out, memory.in<float>(1), shift, out, count);
      if (wants_mean) memory.out<float>(1)[i] = m.mean;
      if (wants_factor) memory.out<float>(2)[i] = m.factor;
    });
  });
}

KernelPtr make_instance_norm(const Task& task, const graph::InstanceNorm& op) {
  if (!all_real(task) || task.inputs[0].shape.size() < 2) return nullptr;
  const Along a = along(task.inputs[0].shape, 1);
  if (!fills(task.inputs[1], a.extent) || !fills(task.inputs[2], a.extent)) return nullptr;
  const float epsilon = op.epsilon;
  return function_kernel(task, "instance norm", [=](const Memory& memory) {
    parallel_each(a.outer * a.extent, a.inner * 3, [&](std::int64_t i) {
      const float* x = memory.in<float>() + i * a.inner;
      const Moments m = moments_of(x, a.inner, epsilon);
      const float factor = m.factor * memory.in<float>(1)[i % a.extent];
      affine_row(x, factor, memory.in<float>(2)[i % a.extent] - m.mean * factor,
                 memory.out<float>() + i * a.inner, a.inner);
    });
  });
}

KernelPtr make_batch_norm(const Task& task, const graph::BatchNorm& op) {
  if (!all_real(task)) return nullptr;
  const Shape& shape = task.inputs[0].shape;
  const Along a = along(shape, op.layout == graph::Layout::nchw ? 1 : shape.size() - 1);
  const float epsilon = op.epsilon;
  return function_kernel(
      task, "batch norm",
      [=](const Memory& memory) {
        auto* factors = reinterpret_cast<float*>(memory.scratch);
        float* offsets = factors + a.extent;
        for (std::int64_t c = 0; c < a.extent; ++c) {
          factors[c] = memory.in<float>(1)[c] / std::sqrt(memory.in<float>(4)[c] + epsilon);
          offsets[c] = memory.in<float>(2)[c] - memory.in<float>(3)[c] * factors[c];
        }
        const std::int64_t count = a.inner == 1 ? a.extent : a.inner;
        const std::int64_t rows = a.inner == 1 ? a.outer : a.outer * a.extent;
        parallel_each(rows, count, [&](std::int64_t i) {
          const float* x = memory.in<float>() + i * count;
          float* out = memory.out<float>() + i * count;
          if (a.inner == 1) {
            affine_row(x, factors, offsets, out, count);
          } else {
            affine_row(x, factors[i % a.extent], offsets[i % a.extent], out, count);
          }
        });
      },
      static_cast<std::size_t>(2 * a.extent) * sizeof(float));
}

KernelPtr make_lp_normalization(const Task& task, const graph::LpNormalization& op) {
  const auto axis = resolve_axis(op.axis, task.inputs[0].shape.size());
  if (!all_real(task) || !axis) return nullptr;
  const Along a = along(task.inputs[0].shape, *axis);
  const std::int64_t p = op.p;
  return function_kernel(task, "norm", [=](const Memory& memory) {
    parallel_each(a.outer * a.inner, a.extent * 4, [&](std::int64_t i) {
      const std::int64_t at = i / a.inner * a.extent * a.inner + i % a.inner;
      divide_by_norm(p, memory.in<float>() + at, memory.out<float>() + at, a.extent, a.inner);
    });
  });
}

KernelPtr make_lrn(const Task& task, const graph::Lrn& op) {
  const Shape& shape = task.inputs[0].shape;
  if (!all_real(task) || op.size < 1 || shape.size() < 2) return nullptr;
  const Along a = along(shape, op.layout == graph::Layout::nchw ? 1 : shape.size() - 1);
  // An even window reaches one further to the back.
  const std::int64_t below = (op.size - 1) / 2;
  const Neighbours n{.below = std::min(below, a.extent),
                     .above = std::min(op.size - 1 - below, a.extent),
                     .channels = a.extent,
                     .response = {op.bias, op.alpha / static_cast<float>(op.size), op.beta}};
  const std::int64_t row = a.inner == 1 ? a.extent : a.inner;
  const std::int64_t rows = a.inner == 1 ? a.outer : a.outer * a.extent;
  const std::int64_t segments = (row + kSegment - 1) / kSegment;
  return function_kernel(task, "lrn", [=](const Memory& memory) {
    parallel_each(rows * segments, std::min(row, kSegment) * op.size, [&](std::int64_t i) {
      const std::int64_t first = i % segments * kSegment;
      const std::int64_t count = std::min(kSegment, row - first);
      const std::int64_t at = i / segments;
      if (a.inner == 1) {
        normalize_channels(n, memory.in<float>() + at * row, memory.out<float>() + at * row, first,
                           count);
      } else {
        const std::int64_t image = at / a.extent * a.extent * a.inner;
        normalize_pixels(n, memory.in<float>() + image, memory.out<float>() + image, at % a.extent,
                         a.inner, first, count);
      }
    });
  });
}

}  // namespace

std::span<const OwnKernels> normalization_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Softmax, make_softmax>(),
      kernels<graph::LayerNorm, make_layer_norm>(),
      kernels<graph::InstanceNorm, make_instance_norm>(),
      kernels<graph::BatchNorm, make_batch_norm>(),
      kernels<graph::LpNormalization, make_lp_normalization>(),
      kernels<graph::Lrn, make_lrn>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
