// Images made larger or smaller.
#include <algorithm>
#include <array>

#include "engine/own/copies.h"
#include "engine/own/own.h"
#include "fleetfit/graph/resize.h"

namespace fleetfit::engine::own {
namespace {

using graph::ResizedAxis;
using graph::ResizeMode;
using graph::ResizeTaps;

/// Replaces one axis by weighted sums along it.
struct Pass {
  std::int64_t outer = 1;
  std::int64_t in = 1;
  std::int64_t inner = 1;
  std::vector<ResizeTaps> taps;

  std::int64_t elements() const { return outer * std::ssize(taps) * inner; }

  void interpolate(const float* line, float* out, const ResizeTaps& t) const {
    const auto row = [&](std::size_t i) { return line + t.index[i] * inner; };
    const auto weight = [&](std::size_t i) { return static_cast<float>(t.weight[i]); };
    const bool cubic = t.count == 4;
    if (inner == 1) {
      *out = weight(0) * *row(0) + weight(1) * *row(1);
      if (cubic) *out += weight(2) * *row(2) + weight(3) * *row(3);
      return;
    }
    blend_rows(row(0), weight(0), row(1), weight(1), out, inner);
    if (!cubic) return;
    add_scaled_row(row(2), weight(2), out, inner);
    add_scaled_row(row(3), weight(3), out, inner);
  }

  void run(const float* x, float* out) const {
    const auto count = std::ssize(taps);
    parallel_each(outer * count, inner * 2, [&](std::int64_t i) {
      interpolate(x + i / count * in * inner, out + i * inner,
                  taps[static_cast<std::size_t>(i % count)]);
    });
  }
};

/// A copy, where nothing is to be resized.
Pass copying(std::int64_t count) {
  return {.outer = 1, .in = 1, .inner = count, .taps = {ResizeTaps{}}};
}

std::vector<Pass> passes_of(const graph::Resize& op, const Shape& shape,
                            const std::vector<ResizedAxis>& axes) {
  Shape now = shape;
  std::vector<Pass> passes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const ResizedAxis& axis = axes[i];
    if (!axis.changes()) continue;
    const Along a = along(now, i);
    Pass pass{a.outer, a.extent, a.inner, {}};
    for (std::int64_t j = 0; j < axis.out; ++j) pass.taps.push_back(resize_taps(op, axis, j));
    passes.push_back(std::move(pass));
    now[i] = axis.out;
  }
  if (passes.empty()) passes.push_back(copying(graph::elements(shape)));
  return passes;
}

std::optional<std::vector<ResizedAxis>> axes_of(const Task& task) {
  const Shape& in = task.inputs[0].shape;
  const Shape& out = task.outputs[0].shape;
  const bool by_sizes = has_input(task, 3) && graph::elements(task.inputs[3].shape) > 0;
  std::vector<double> scales(in.size(), 1);
  if (!by_sizes) {
    if (!has_input(task, 2)) return std::nullopt;
    const Operand& given = task.inputs[2];
    if (!given.constant || given.dtype != DType::f32) return std::nullopt;
    const auto values = given.constant->as<float>();
    if (values.size() != in.size()) return std::nullopt;
    scales.assign(values.begin(), values.end());
  }
  std::vector<ResizedAxis> axes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double by_extents = static_cast<double>(out[i]) / static_cast<double>(in[i]);
    axes.push_back({in[i], out[i], by_sizes ? by_extents : scales[i]});
  }
  return axes;
}

/// Copies stored numbers, whatever they mean.
KernelPtr make_nearest_resize(const Task& task, const graph::Resize& op) {
  const auto axes = axes_of(task);
  if (!axes || op.mode != ResizeMode::nearest) return nullptr;
  std::vector<Ints> indices;
  for (const ResizedAxis& axis : *axes) {
    auto& list = indices.emplace_back();
    for (std::int64_t i = 0; i < axis.out; ++i) list.push_back(resize_taps(op, axis, i).index[0]);
  }
  PickedCopy copy(task.inputs[0].shape, indices,
                  std::vector<std::byte>(graph::size_of(task.inputs[0].dtype)));
  return function_kernel(task, "resize nearest", [copy = std::move(copy)](const Memory& memory) {
    copy.run(memory.inputs[0], memory.outputs[0]);
  });
}

KernelPtr make_smooth_resize(const Task& task, const graph::Resize& op) {
  const auto axes = axes_of(task);
  if (!axes || !is_real(task.inputs[0]) || !is_real(task.outputs[0])) return nullptr;
  auto passes = passes_of(op, task.inputs[0].shape, *axes);
  std::size_t largest = 0;  // of what lies between two passes
  for (std::size_t i = 0; i + 1 < passes.size(); ++i) {
    largest = std::max(largest, static_cast<std::size_t>(passes[i].elements()));
  }
  const std::size_t half = aligned(largest * sizeof(float));
  const std::size_t scratch = passes.size() > 1 ? 2 * half : 0;
  return function_kernel(
      task, "resize",
      [half, passes = std::move(passes)](const Memory& memory) {
        const auto* from = memory.in<float>();
        for (std::size_t i = 0; i < passes.size(); ++i) {
          float* to = i + 1 == passes.size()
                          ? memory.out<float>()
                          : reinterpret_cast<float*>(memory.scratch + i % 2 * half);
          passes[i].run(from, to);
          from = to;
        }
      },
      scratch);
}

KernelPtr make_resize(const Task& task, const graph::Resize& op) {
  if (op.mode != graph::ResizeMode::nearest) return make_smooth_resize(task, op);
  return keeps_stored(task) ? make_nearest_resize(task, op) : nullptr;
}

}  // namespace

std::span<const OwnKernels> resize_kernels() {
  static constexpr std::array kEntries{
      kernels<graph::Resize, make_resize>({.stored = make_of<graph::Resize, make_resize>}),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
