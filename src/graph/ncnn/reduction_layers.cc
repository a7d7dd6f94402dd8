#include <fmt/format.h>

#include <array>

#include "graph/ncnn/layers.h"

namespace fleetfit::graph::ncnn {
namespace {

// Converters of old counted a batch dimension; the mark says that a file does not.
constexpr std::string_view kTooOld =
    "it was written by a converter whose axes ncnn no longer accepts; convert the model again";

/// Indexed by operation.
constexpr std::array<ReduceKind, 11> kKinds = {
    ReduceKind::sum, ReduceKind::l1,      ReduceKind::sum_square, ReduceKind::mean,
    ReduceKind::max, ReduceKind::min,     ReduceKind::prod,       ReduceKind::l1,
    ReduceKind::l2,  ReduceKind::log_sum, ReduceKind::log_sum_exp};

/// The axes to reduce, never the batch; all of the blob if the layer says so.
Ints reduced_axes(Conversion& c, const Blob& blob) {
  Ints axes;
  const auto dims = static_cast<std::int64_t>(blob.dims);
  if (c.params().flag(1, "reduce_all", 1)) {
    for (std::int64_t axis = 1; axis <= dims; ++axis) axes.push_back(axis);
    return axes;
  }
  if (!c.params().flag(5, "fixbug0")) c.fail(std::string(kTooOld));
  for (const auto axis : c.params().integers(3, "axes")) {
    const auto index = axis < 0 ? axis + dims : axis;
    if (index < 0 || index >= dims) c.fail(fmt::format("it has no axis {}", axis));
    axes.push_back(index + 1);
  }
  return axes;
}

void reduction(Conversion& c) {
  auto& p = c.params();
  const auto kind =
      kKinds[static_cast<std::size_t>(p.integer({.id = 0, .name = "operation", .high = 10}))];
  const auto blob = c.blob(0);
  const auto x = c.flat(blob);
  if (blob.dims == 0) return c.unknown("the dimensions of its input are not known");
  const auto axes = reduced_axes(c, blob);
  if (axes.empty()) return c.fail("it names no axes");
  const bool keep = p.flag(4, "keepdims");
  // ncnn's smallest blob has one dimension, so the last one is not dropped.
  const bool is_all = axes.size() == static_cast<std::size_t>(blob.dims);
  auto y = c.add(Reduce{.kind = kind, .axes = axes, .keep_dims = keep || is_all}, {x});
  if (is_all && !keep && blob.dims > 1) y = c.add(Flatten{.axis = 1}, {y}, "flatten");
  if (const auto factor = p.number(2, "coeff", 1); factor != 1) {
    y = c.add(Elementwise{.kind = ElementwiseKind::mul}, {y, c.scalar("coeff", factor)}, "scale");
  }
  c.output(0, y);
}

void softmax(Conversion& c) {
  const auto axis = c.params().integer({.id = 0, .name = "axis", .low = -4, .high = 3});
  if (axis != 0 && !c.params().flag(1, "fixbug0")) return c.fail(std::string(kTooOld));
  const auto blob = c.blob(0);
  output_like(c, c.add(Softmax{.axis = Conversion::axis(blob, axis)}, {blob.tensor}), blob);
}

constexpr std::array<LayerType, 2> kLayers = {{
    {"Reduction", reduction},
    {"Softmax", softmax},
}};

}  // namespace

std::span<const LayerType> reduction_layers() { return kLayers; }

}  // namespace fleetfit::graph::ncnn
