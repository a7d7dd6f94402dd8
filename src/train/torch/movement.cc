#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "fleetfit/core/random.h"
#include "fleetfit/graph/resize.h"
#include "train/torch/operators.h"

/// What moves data, or reads shapes.
namespace fleetfit::train::operators {

using namespace graph;  // the operators, which this file is all about

namespace {

// ---- Moving data

/// A constant that stands for each sample of the graph's batch, repeated for the batch at hand.
at::Tensor for_batch(const Call& call, std::size_t i) {
  const auto& x = call.in(i);
  const bool repeats = call.is_static_input(i) && x.dim() > 1 && x.size(0) == 1 &&
                       call.graph_batch == 1 && call.batch != 1;
  if (!repeats) return x;
  auto shape = x.sizes().vec();
  shape[0] = call.batch;
  return x.expand(shape);
}

Outputs run(const Concat& op, const Call& call) {
  const bool along_batch = positive_axis(op.axis, call.in(0).dim()) == 0;
  std::vector<at::Tensor> parts;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    parts.push_back(along_batch ? call.in(i) : for_batch(call, i));
  return {at::cat(together(std::move(parts)), op.axis)};
}

Outputs run(const graph::Split& op, const Call& call) {
  const auto& x = call.in(0);
  const auto count = std::ssize(call.node.outputs);
  const Ints sizes = call.has(1) ? ints_of(call.in(1))
                                 : Ints(static_cast<std::size_t>(count), x.size(op.axis) / count);
  return x.split_with_sizes(sizes, op.axis);
}

/// Every `step`-th index from the back.
at::Tensor sliced_backwards(const at::Tensor& x, std::int64_t axis, std::int64_t start,
                            std::int64_t end, std::int64_t step) {
  const auto extent = x.size(axis);
  start = std::clamp<std::int64_t>(start < 0 ? start + extent : start, -1, extent - 1);
  end = std::clamp<std::int64_t>(end < 0 ? end + extent : end, -1, extent - 1);
  Ints indices;
  for (auto i = start; i > end; i += step) indices.push_back(i);
  return x.index_select(axis, tensor_of(indices).to(x.device()));
}

Outputs run(const graph::Slice& op, const Call& call) {
  auto x = call.in(0);
  const auto starts = ints_of(call.in(1));
  const auto ends = ints_of(call.in(2));
  const auto axes = call.has(3) ? ints_of(call.in(3)) : counting<std::int64_t>(std::ssize(starts));
  const auto steps = call.has(4) ? ints_of(call.in(4)) : Ints(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    x = steps[i] > 0 ? x.slice(axes[i], starts[i], ends[i], steps[i])
                     : sliced_backwards(x, axes[i], starts[i], ends[i], steps[i]);
  }
  auto squeezed = positive_axes(op.squeezed, x.dim());
  std::ranges::sort(squeezed, std::greater<>());
  for (const auto axis : squeezed) x = x.squeeze(axis);
  return {x};
}

/// Where each element of a padded axis comes from.
Ints mirrored_indices(PadMode mode, std::int64_t extent, std::int64_t begin, std::int64_t end) {
  Ints indices;
  for (auto i = -begin; i < extent + end; ++i) {
    auto from = std::clamp<std::int64_t>(i, 0, extent - 1);
    if (mode == PadMode::reflect && extent > 1) {
      const auto period = 2 * (extent - 1);
      from = ((i % period) + period) % period;
      if (from >= extent) from = period - from;
    }
    indices.push_back(from);
  }
  return indices;
}

Outputs run(const Pad& op, const Call& call) {
  auto x = call.in(0);
  const auto pads = ints_of(call.in(1));
  const auto rank = x.dim();
  if (op.mode == PadMode::constant) {
    Ints last_first;
    for (auto axis = rank; axis-- > 0;) {
      last_first.push_back(pads[static_cast<std::size_t>(axis)]);
      last_first.push_back(pads[static_cast<std::size_t>(axis + rank)]);
    }
    const double value = call.has(2) ? call.in(2).item<double>() : 0;
    return {at::constant_pad_nd(x, last_first, value)};
  }
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const auto begin = pads[static_cast<std::size_t>(axis)];
    const auto end = pads[static_cast<std::size_t>(axis + rank)];
    if (begin == 0 && end == 0) continue;
    const auto indices = mirrored_indices(op.mode, x.size(axis), begin, end);
    x = x.index_select(axis, tensor_of(indices).to(x.device()));
  }
  return {x};
}

/// Weighted sums along one axis, as a product with a matrix.
at::Tensor resized_axis(const Resize& op, const at::Tensor& x, std::int64_t axis,
                        const ResizedAxis& extents) {
  Ints nearest;
  auto weights = at::full({extents.out, extents.in}, 0.0, at::kFloat);
  auto* const weight = weights.data_ptr<float>();
  for (std::int64_t i = 0; i < extents.out; ++i) {
    const auto taps = resize_taps(op, extents, i);
    nearest.push_back(taps.index[0]);
    for (std::size_t t = 0; t < static_cast<std::size_t>(taps.count); ++t)
      weight[i * extents.in + taps.index[t]] += static_cast<float>(taps.weight[t]);
  }
  if (op.mode == ResizeMode::nearest)
    return x.index_select(axis, tensor_of(nearest).to(x.device()));
  return at::linear(x.movedim(axis, -1), weights.to(x.device())).movedim(-1, axis);
}

Outputs run(const Resize& op, const Call& call) {
  auto x = call.in(0);
  const bool by_sizes = call.has(3) && call.in(3).numel() > 0;
  const auto given = (by_sizes ? call.in(3) : call.in(2)).to(at::kCPU, at::kDouble).contiguous();
  const auto* const numbers = given.data_ptr<double>();
  // The batch is never resized.
  for (std::int64_t axis = 1; axis < x.dim(); ++axis) {
    const auto in = x.size(axis);
    const auto out = static_cast<std::int64_t>(
        by_sizes ? numbers[axis] : std::floor(static_cast<double>(in) * numbers[axis]));
    const double scale =
        by_sizes ? static_cast<double>(out) / static_cast<double>(in) : numbers[axis];
    const ResizedAxis extents{.in = in, .out = out, .scale = scale};
    if (extents.changes()) x = resized_axis(op, x, axis, extents);
  }
  return {x};
}

Outputs run(const Transpose& op, const Call& call) {
  const auto& x = call.in(0);
  Ints perm = op.perm;
  if (perm.empty()) {
    perm = counting(x.dim());
    std::ranges::reverse(perm);
  }
  return {x.permute(perm)};
}

/// A shape that is written into the graph holds for its own batch only.
void adjust_batch(Ints& shape, const Call& call, std::int64_t numel) {
  if (shape.empty() || call.batch == call.graph_batch || !call.is_static_input(1)) return;
  const bool open = std::ranges::find(shape, -1) != shape.end();
  if (open) {
    if (shape[0] == call.graph_batch) shape[0] = call.batch;
    return;
  }
  const auto stated =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  if (stated == numel || stated * call.batch != numel * call.graph_batch) return;
  shape[0] = shape[0] * call.batch / call.graph_batch;
}

Outputs run(const Reshape& op, const Call& call) {
  const auto& x = call.in(0);
  auto shape = ints_of(call.in(1));
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 0 && !op.allow_zero) shape[i] = x.size(static_cast<std::int64_t>(i));
  if (!call.is_static_input(0)) adjust_batch(shape, call, x.numel());
  return {x.reshape(shape)};
}

Outputs run(const Flatten& op, const Call& call) {
  const auto& x = call.in(0);
  const auto axis = positive_axis(op.axis, x.dim());
  const auto rows = std::accumulate(x.sizes().begin(), x.sizes().begin() + axis, std::int64_t{1},
                                    std::multiplies<>());
  return {x.reshape({rows, rows == 0 ? 0 : x.numel() / rows})};
}

/// Those of the graph's own extents that are 1, where the operator does not say which.
Ints squeezed_axes(const Call& call) {
  if (call.has(1)) return positive_axes(ints_of(call.in(1)), call.in(0).dim());
  const auto& shape = call.graph.tensor(call.node.inputs[0]).shape;
  if (!shape) misfit("the extents of the operand are not known");
  Ints axes;
  for (std::size_t i = 0; i < shape->size(); ++i)
    if ((*shape)[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

Outputs run(const Squeeze&, const Call& call) {
  auto x = call.in(0);
  auto axes = squeezed_axes(call);
  std::ranges::sort(axes, std::greater<>());
  for (const auto axis : axes) x = x.squeeze(axis);
  return {x};
}

Outputs run(const Unsqueeze&, const Call& call) {
  auto x = call.in(0);
  auto axes = ints_of(call.in(1));
  axes = positive_axes(axes, x.dim() + std::ssize(axes));
  std::ranges::sort(axes);
  for (const auto axis : axes) x = x.unsqueeze(axis);
  return {x};
}

Outputs run(const Expand&, const Call& call) {
  const auto& x = call.in(0);
  auto shape = ints_of(call.in(1));
  const bool stated = call.is_static_input(1) && std::ssize(shape) > 1;
  if (stated && shape[0] == call.graph_batch) shape[0] = call.batch;
  while (std::ssize(shape) < x.dim()) shape.insert(shape.begin(), 1);
  const auto missing = std::ssize(shape) - x.dim();
  for (std::int64_t i = 0; i < x.dim(); ++i) {
    auto& extent = shape[static_cast<std::size_t>(i + missing)];
    if (extent == 1) extent = x.size(i);
  }
  return {x.expand(shape)};
}

Outputs run(const Tile&, const Call& call) { return {call.in(0).repeat(ints_of(call.in(1)))}; }

Outputs run(const Gather& op, const Call& call) {
  const auto& x = call.in(0);
  const auto axis = positive_axis(op.axis, x.dim());
  const auto wanted = call.in(1).to(x.device(), at::kLong);
  const auto flat = wanted.flatten();
  const auto indices = at::where(flat.lt(0), flat.add(x.size(axis)), flat);
  auto shape = x.sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, wanted.sizes().begin(), wanted.sizes().end());
  return {x.index_select(axis, indices).reshape(shape)};
}

Outputs run(const Stack& op, const Call& call) { return {at::stack(call.inputs, op.axis)}; }

Outputs run(const Unstack& op, const Call& call) { return call.in(0).unbind(op.axis); }

at::Tensor regrouped(const at::Tensor& x, const Ints& split, const Ints& perm, const Ints& result) {
  return x.reshape(split).permute(perm).reshape(result);
}

Outputs run(const DepthToSpace& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto b = op.block;
  const auto [n, c, h, w] = std::tuple(x.size(0), x.size(1) / (b * b), x.size(2), x.size(3));
  const Ints result{n, c, h * b, w * b};
  const auto y = op.column_row_depth ? regrouped(x, {n, c, b, b, h, w}, {0, 1, 4, 2, 5, 3}, result)
                                     : regrouped(x, {n, b, b, c, h, w}, {0, 3, 4, 1, 5, 2}, result);
  return {from_channels_first(y, op.layout)};
}

Outputs run(const SpaceToDepth& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto b = op.block;
  const auto [n, c, h, w] = std::tuple(x.size(0), x.size(1), x.size(2) / b, x.size(3) / b);
  const auto y = regrouped(x, {n, c, h, b, w, b}, {0, 3, 5, 1, 2, 4}, {n, c * b * b, h, w});
  return {from_channels_first(y, op.layout)};
}

Outputs run(const ChannelShuffle& op, const Call& call) {
  const auto x = to_channels_first(call.in(0), op.layout);
  const auto y = x.unflatten(1, {op.groups, x.size(1) / op.groups}).transpose(1, 2).flatten(1, 2);
  return {from_channels_first(y, op.layout)};
}

// ---- Constants and shapes

Outputs run(const ConstantOfShape& op, const Call& call) {
  const auto type = scalar_type_of(op.dtype);
  if (!type) misfit("constants of {} are not known here", to_string(op.dtype));
  return {at::full(ints_of(call.in(0)), op.value, *type)};
}

Outputs run(const ShapeOf& op, const Call& call) {
  const auto extents = call.in(0).sizes();
  const auto rank = std::ssize(extents);
  const auto bound = [&](std::int64_t i) { return std::clamp<std::int64_t>(i, 0, rank); };
  const auto begin = bound(positive_axis(op.start, rank));
  const auto end = op.end ? bound(positive_axis(*op.end, rank)) : rank;
  const auto count = std::max<std::int64_t>(0, end - begin);
  return {tensor_of(
      extents.slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)).vec())};
}

Outputs run(const graph::Range&, const Call& call) {
  return {
      at::arange(call.in(0).item(), call.in(1).item(), call.in(2).item(), call.in(0).options())};
}

Outputs run(const Identity&, const Call& call) { return {call.in(0)}; }

Outputs run(const Dropout&, const Call& call) {
  const auto& x = call.in(0);
  if (call.drop.share <= 0) return {x};
  // Drawn here and not by torch, so that every device and version leaves out the same.
  auto kept = at::empty(x.sizes(), at::kFloat);
  auto* const factors = kept.data_ptr<float>();
  const auto scale = static_cast<float>(1 / (1 - call.drop.share));
  for (std::int64_t i = 0; i < kept.numel(); ++i) {
    const auto bits = core::mix(call.drop.seed, static_cast<std::uint64_t>(i));
    factors[i] = core::unit_interval(bits) < call.drop.share ? 0 : scale;
  }
  return {x.mul(kept.to(x.device()))};
}

}  // namespace

std::span<const Runner> movement_runners() {
  static constexpr std::array kRunners{
      runner<graph::Concat, run>(),          runner<graph::Split, run>(),
      runner<graph::Slice, run>(),           runner<graph::Pad, run>(),
      runner<graph::Resize, run>(),          runner<graph::Transpose, run>(),
      runner<graph::Reshape, run>(),         runner<graph::Flatten, run>(),
      runner<graph::Squeeze, run>(),         runner<graph::Unsqueeze, run>(),
      runner<graph::Expand, run>(),          runner<graph::Tile, run>(),
      runner<graph::Gather, run>(),          runner<graph::Stack, run>(),
      runner<graph::Unstack, run>(),         runner<graph::DepthToSpace, run>(),
      runner<graph::SpaceToDepth, run>(),    runner<graph::ChannelShuffle, run>(),
      runner<graph::ConstantOfShape, run>(), runner<graph::ShapeOf, run>(),
      runner<graph::Range, run>(),           runner<graph::Identity, run>(),
      runner<graph::Dropout, run>(),
  };
  return kRunners;
}

}  // namespace fleetfit::train::operators
