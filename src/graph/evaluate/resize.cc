#include <algorithm>
#include <cmath>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// One dimension of a resize.
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

/// The index at a whole-numbered position, the border's beyond the border.
std::int64_t index_at(double position, std::int64_t extent) {
  return truncate<std::int64_t>(std::clamp(position, 0.0, static_cast<double>(extent - 1)));
}

/// An output element is a weighted sum of a few input elements along the axis.
struct Tap {
  std::int64_t index = 0;
  double weight = 0;
};
using Taps = std::vector<Tap>;

Taps linear_taps(double position, std::int64_t extent) {
  const double low = std::floor(position);
  const double fraction = position - low;
  return {{index_at(low, extent), 1 - fraction}, {index_at(low + 1, extent), fraction}};
}

/// Keys' cubic convolution with the coefficient a.
Taps cubic_taps(double position, std::int64_t extent, double a) {
  const double low = std::floor(position);
  Taps taps;
  for (int i = -1; i <= 2; ++i) {
    const double d = std::abs(position - low - i);
    const double weight =
        d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    taps.push_back({index_at(low + i, extent), weight});
  }
  return taps;
}

/// Replaces one axis by weighted sums along it.
std::vector<double> interpolate(const std::vector<double>& numbers, const Shape& shape,
                                std::size_t axis, const std::vector<Taps>& taps) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto outer = elements(Shape(shape.begin(), at));
  const auto inner = elements(Shape(at + 1, shape.end()));
  std::vector<double> result(outer * taps.size() * inner, 0);
  double* out = result.data();
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const auto& sum : taps) {
      for (const auto& tap : sum) {
        const double* in = numbers.data() + (i * *at + tap.index) * inner;
        for (std::int64_t j = 0; j < inner; ++j) out[j] += tap.weight * in[j];
      }
      out += inner;
    }
  }
  return result;
}

Values nearest(const Resize& op, const Call& call, const std::vector<Axis>& axes) {
  Offsets indices;
  for (const auto& axis : axes) {
    auto& along = indices.emplace_back(axis.out);
    for (std::int64_t i = 0; i < axis.out; ++i) {
      along[i] = index_at(rounded(op.nearest, source_position(op.coordinates, axis, i)), axis.in);
    }
  }
  return one(pick(call.input(0), std::move(indices)));
}

Values smooth(const Resize& op, const Call& call, const std::vector<Axis>& axes) {
  auto numbers = read<double>(call.input(0));
  auto shape = call.input(0).shape;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& axis = axes[i];
    if (axis.in == axis.out && axis.scale == 1) continue;
    std::vector<Taps> taps;
    for (std::int64_t j = 0; j < axis.out; ++j) {
      const auto position = source_position(op.coordinates, axis, j);
      taps.push_back(op.mode == ResizeMode::linear
                         ? linear_taps(position, axis.in)
                         : cubic_taps(position, axis.in, op.cubic_coefficient));
    }
    numbers = interpolate(numbers, shape, i, taps);
    shape[i] = axis.out;
  }
  return one(write(call.result(), numbers));
}

}  // namespace

Values run(const Resize& op, const Call& call) {
  const auto& in = call.input(0).shape;
  const auto& out = call.result().shape;
  std::vector<double> scales;
  const auto* sizes = call.optional(3);
  const bool by_sizes = sizes != nullptr && elements(sizes->shape) > 0;
  if (!by_sizes && call.optional(2) != nullptr) scales = read<double>(call.input(2));
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] == 0 && out[i] > 0) return misfit("dimension {} has no elements", i);
    const double scale =
        by_sizes ? static_cast<double>(out[i]) / static_cast<double>(in[i]) : scales[i];
    axes.push_back({in[i], out[i], scale});
  }
  if (elements(out) == 0) return one(write(call.result(), std::vector<double>{}));
  return op.mode == ResizeMode::nearest ? nearest(op, call, axes) : smooth(op, call, axes);
}

}  // namespace fleetfit::graph::interpreter
