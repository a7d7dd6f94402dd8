#include "fleetfit/graph/resize.h"

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// Replaces one axis by weighted sums along it.
std::vector<double> interpolate(const std::vector<double>& numbers, const Shape& shape,
                                std::size_t axis, const std::vector<ResizeTaps>& taps) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto outer = elements(Shape(shape.begin(), at));
  const auto inner = elements(Shape(at + 1, shape.end()));
  std::vector<double> result(outer * taps.size() * inner, 0);
  double* out = result.data();
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const auto& sum : taps) {
      for (int t = 0; t < sum.count; ++t) {
        const double* in = numbers.data() + (i * *at + sum.index[t]) * inner;
        for (std::int64_t j = 0; j < inner; ++j) out[j] += sum.weight[t] * in[j];
      }
      out += inner;
    }
  }
  return result;
}

Values nearest(const Resize& op, const Call& call, const std::vector<ResizedAxis>& axes) {
  Offsets indices;
  for (const auto& axis : axes) {
    auto& along = indices.emplace_back(axis.out);
    for (std::int64_t i = 0; i < axis.out; ++i) along[i] = resize_taps(op, axis, i).index[0];
  }
  return one(pick(call.input(0), std::move(indices)));
}

Values smooth(const Resize& op, const Call& call, const std::vector<ResizedAxis>& axes) {
  auto numbers = read<double>(call.input(0));
  auto shape = call.input(0).shape;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto& axis = axes[i];
    if (!axis.changes()) continue;
    std::vector<ResizeTaps> taps;
    for (std::int64_t j = 0; j < axis.out; ++j) taps.push_back(resize_taps(op, axis, j));
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
  std::vector<ResizedAxis> axes;
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
