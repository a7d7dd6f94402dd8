// Images made larger or smaller.
#include <algorithm>
#include <cmath>

#include "engine/own/own.h"
#include "engine/own/picked_copy.h"
#include "engine/own/rows.h"
#include "engine/threads.h"

namespace fleetfit::engine::own {
namespace {

using graph::CoordinateMode;
using graph::NearestMode;
using graph::ResizeMode;

struct Axis {
  std::int64_t in = 0;
  std::int64_t out = 0;
  double scale = 1;
};

/// Where in the input an output position lies. ONNX's align_corners spans the unrounded extent
/// in * scale.
double source_position(CoordinateMode mode, const Axis& axis, std::int64_t position) {
  const auto at = static_cast<double>(position);
  const double extent = static_cast<double>(axis.in) * axis.scale;
  switch (mode) {
    case CoordinateMode::half_pixel:
      break;
    case CoordinateMode::pytorch_half_pixel:
      if (axis.out == 1) return 0;
      break;
    case CoordinateMode::align_corners:
      return axis.out == 1 ? 0 : at * static_cast<double>(axis.in - 1) / (extent - 1);
    case CoordinateMode::asymmetric:
      return at / axis.scale;
  }
  return (at + 0.5) / axis.scale - 0.5;
}

double rounded(NearestMode mode, double position) {
  switch (mode) {
    case NearestMode::round_prefer_floor:
      return std::ceil(position - 0.5);
    case NearestMode::round_prefer_ceil:
      return std::floor(position + 0.5);
    case NearestMode::floor:
      return std::floor(position);
    case NearestMode::ceil:
      return std::ceil(position);
  }
  return position;
}

std::int64_t index_at(double position, std::int64_t extent) {
  return static_cast<std::int64_t>(std::clamp(position, 0.0, static_cast<double>(extent - 1)));
}

/// An output element is a weighted sum of four input elements at most.
struct Taps {
  std::int64_t index[4] = {};
  float weight[4] = {};
};

Taps linear_taps(double position, std::int64_t extent) {
  const double low = std::floor(position);
  const double fraction = position - low;
  return {{index_at(low, extent), index_at(low + 1, extent)},
          {static_cast<float>(1 - fraction), static_cast<float>(fraction)}};
}

/// Keys' cubic convolution with the coefficient a.
Taps cubic_taps(double position, std::int64_t extent, double a) {
  const double low = std::floor(position);
  Taps taps;
  for (int i = 0; i < 4; ++i) {
    const double d = std::abs(position - low - (i - 1));
    taps.index[i] = index_at(low + i - 1, extent);
    taps.weight[i] = static_cast<float>(d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                                               : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a);
  }
  return taps;
}

/// Replaces one axis by weighted sums along it.
struct Pass {
  std::int64_t outer = 1;
  std::int64_t in = 1;
  std::int64_t inner = 1;
  bool cubic = false;
  std::vector<Taps> taps;

  std::int64_t elements() const { return outer * std::ssize(taps) * inner; }

  void interpolate(const float* line, float* out, const Taps& t) const {
    const auto row = [&](int i) { return line + t.index[i] * inner; };
    if (inner == 1) {
      *out = t.weight[0] * *row(0) + t.weight[1] * *row(1);
      if (cubic) *out += t.weight[2] * *row(2) + t.weight[3] * *row(3);
      return;
    }
    blend_rows(row(0), t.weight[0], row(1), t.weight[1], out, inner);
    if (!cubic) return;
    add_scaled_row(row(2), t.weight[2], out, inner);
    add_scaled_row(row(3), t.weight[3], out, inner);
  }

  void run(const float* x, float* out) const {
    const auto count = std::ssize(taps);
    parallel(outer * count, grain_of(inner * 2), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        interpolate(x + i / count * in * inner, out + i * inner,
                    taps[static_cast<std::size_t>(i % count)]);
      }
    });
  }
};

/// A copy, where nothing is to be resized.
Pass copying(std::int64_t count) {
  return {.outer = 1, .in = 1, .inner = count, .taps = {linear_taps(0, 1)}};
}

std::vector<Pass> passes_of(const graph::Resize& op, const Shape& shape,
                            const std::vector<Axis>& axes) {
  Shape now = shape;
  std::vector<Pass> passes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Axis& axis = axes[i];
    if (axis.in == axis.out && axis.scale == 1) continue;
    const Along a = along(now, i);
    Pass pass{a.outer, a.extent, a.inner, op.mode == ResizeMode::cubic, {}};
    for (std::int64_t j = 0; j < axis.out; ++j) {
      const double position = source_position(op.coordinates, axis, j);
      pass.taps.push_back(pass.cubic ? cubic_taps(position, axis.in, op.cubic_coefficient)
                                     : linear_taps(position, axis.in));
    }
    passes.push_back(std::move(pass));
    now[i] = axis.out;
  }
  if (passes.empty()) passes.push_back(copying(graph::elements(shape)));
  return passes;
}

std::optional<std::vector<Axis>> axes_of(const Task& task) {
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
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double by_extents = static_cast<double>(out[i]) / static_cast<double>(in[i]);
    axes.push_back({in[i], out[i], by_sizes ? by_extents : scales[i]});
  }
  return axes;
}

}  // namespace

KernelPtr make_nearest_resize(const Task& task, const graph::Resize& op) {
  const auto axes = axes_of(task);
  if (!axes || op.mode != ResizeMode::nearest) return nullptr;
  std::vector<Ints> indices;
  for (const Axis& axis : *axes) {
    auto& list = indices.emplace_back();
    for (std::int64_t i = 0; i < axis.out; ++i) {
      list.push_back(
          index_at(rounded(op.nearest, source_position(op.coordinates, axis, i)), axis.in));
    }
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
        const float* from = memory.in<float>();
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

}  // namespace fleetfit::engine::own
