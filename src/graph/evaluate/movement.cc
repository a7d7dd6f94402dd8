#include <algorithm>
#include <numeric>

#include "graph/evaluate/kernels.h"
#include "graph/operands.h"

namespace fleetfit::graph::interpreter {
namespace {

/// 0, 1, …, count - 1.
Ints counting(std::int64_t count) {
  Ints all(count);
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

/// Indices that take a whole tensor.
Offsets everything(const Shape& shape) {
  Offsets all;
  for (const auto extent : shape) all.push_back(counting(extent));
  return all;
}

/// Indices [first, first + count) along one axis.
Value part(const Value& x, std::size_t axis, std::int64_t first, std::int64_t count) {
  auto indices = everything(x.shape);
  indices[axis] = counting(count);
  for (auto& index : indices[axis]) index += first;
  return pick(x, std::move(indices));
}

/// Joins tensors that differ at most in the extent of this axis.
Value joined(std::span<const Value* const> parts, std::size_t axis, const Form& form) {
  std::vector<std::byte> bytes;
  bytes.reserve(elements(form.shape) * size_of(form.dtype));
  const auto outer =
      elements(Shape(form.shape.begin(), form.shape.begin() + static_cast<std::ptrdiff_t>(axis)));
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const auto* part : parts) {
      const auto all = part->data.bytes();
      const auto run = all.subspan(all.size() / outer * i, all.size() / outer);
      bytes.insert(bytes.end(), run.begin(), run.end());
    }
  }
  return Value{form.dtype, form.shape, TensorData::own(std::move(bytes)),
               parts.front()->quantization};
}

Status check_parts(const Call& call) {
  for (const auto* part : call.inputs) {
    if (part == nullptr || part->dtype != call.input(0).dtype) {
      return misfit("an operand is missing or of another type");
    }
  }
  return {};
}

Ints ints_or(const Value* value, Ints otherwise) {
  return value != nullptr ? read<std::int64_t>(*value) : std::move(otherwise);
}

struct Range1d {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

/// What a slice takes of an extent: bounds count from the end where negative and stop at the ends.
Ints sliced(std::int64_t extent, Range1d range) {
  const auto clamped = [extent](std::int64_t bound, std::int64_t low, std::int64_t high) {
    return std::clamp(bound < 0 ? bound + extent : bound, low, high);
  };
  Ints indices;
  if (extent == 0) return indices;
  if (range.step > 0) {
    const auto end = clamped(range.end, 0, extent);
    auto at = clamped(range.start, 0, extent);
    while (at < end) {
      indices.push_back(at);
      if (range.step >= end - at) break;  // also keeps the sum from overflowing
      at += range.step;
    }
  } else {
    const auto end = clamped(range.end, -1, extent - 1);
    auto at = clamped(range.start, 0, extent - 1);
    while (at > end) {
      indices.push_back(at);
      if (range.step <= end - at) break;
      at += range.step;
    }
  }
  return indices;
}

/// The index that an index before or behind the extent takes.
std::int64_t padded_index(PadMode mode, std::int64_t index, std::int64_t extent) {
  if (index >= 0 && index < extent) return index;
  if (mode == PadMode::constant) return kFill;
  if (mode == PadMode::edge) return index < 0 ? 0 : extent - 1;
  if (extent == 1) return 0;
  const auto period = 2 * (extent - 1);
  const auto within = ((index % period) + period) % period;
  return within < extent ? within : period - within;
}

Result<Offsets> padded(PadMode mode, const Ints& pads, const Shape& from, const Shape& to) {
  Offsets indices;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    if (mode != PadMode::constant && from[axis] == 0 && to[axis] > 0) {
      return misfit("dimension {} has nothing to pad with", axis);
    }
    auto& along = indices.emplace_back(counting(to[axis]));
    for (auto& index : along) index = padded_index(mode, index - pads[axis], from[axis]);
  }
  return indices;
}

/// reshape, transpose, reshape: the way of all operators that regroup elements.
Value regrouped(const Value& x, const Shape& split, const Ints& perm, const Shape& result) {
  return reshaped(permuted(reshaped(x, split), perm), result);
}

/// A regrouping of an image with channels in second place, for either layout.
Values regroup_image(const Call& call, Layout layout, const Shape& split, const Ints& perm) {
  const auto x = to_channels_first(call.input(0), layout);
  const auto shape = to_channels_first(call.result().shape, layout);
  return one(from_channels_first(regrouped(x, split, perm, shape), layout));
}

}  // namespace

Values run(const Identity&, const Call& call) { return one(call.input(0)); }

Values run(const Dropout&, const Call& call) {
  std::vector<Value> results{call.input(0)};
  if (call.results.size() > 1) {
    const std::vector<std::int64_t> kept(elements(call.results[1].shape), 1);
    results.push_back(write(call.results[1], kept));
  }
  return results;
}

Values run(const Reshape&, const Call& call) {
  return one(reshaped(call.input(0), call.result().shape));
}
Values run(const Flatten&, const Call& call) {
  return one(reshaped(call.input(0), call.result().shape));
}
Values run(const Squeeze&, const Call& call) {
  return one(reshaped(call.input(0), call.result().shape));
}
Values run(const Unsqueeze&, const Call& call) {
  return one(reshaped(call.input(0), call.result().shape));
}

Values run(const Transpose& op, const Call& call) {
  const auto rank = std::ssize(call.input(0).shape);
  Ints perm = op.perm;
  if (perm.empty()) {
    perm = counting(rank);
    std::reverse(perm.begin(), perm.end());
  }
  for (auto& axis : perm) axis = axis < 0 ? axis + rank : axis;
  return one(permuted(call.input(0), perm));
}

Values run(const Concat& op, const Call& call) {
  FLEETFIT_TRY(check_parts(call));
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.result().shape.size()));
  return one(joined(call.inputs, axis, call.result()));
}

Values run(const Stack& op, const Call& call) {
  FLEETFIT_TRY(check_parts(call));
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.result().shape.size()));
  return one(joined(call.inputs, axis, call.result()));
}

Values run(const Split& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.input(0).shape.size()));
  std::vector<Value> parts;
  std::int64_t first = 0;
  for (const auto& form : call.results) {
    parts.push_back(part(call.input(0), axis, first, form.shape[axis]));
    first += form.shape[axis];
  }
  return parts;
}

Values run(const Unstack& op, const Call& call) {
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, call.input(0).shape.size()));
  std::vector<Value> parts;
  for (const auto& form : call.results) {
    parts.push_back(reshaped(part(call.input(0), axis, std::ssize(parts), 1), form.shape));
  }
  return parts;
}

Values run(const Slice&, const Call& call) {
  const auto& x = call.input(0);
  const auto starts = read<std::int64_t>(call.input(1));
  const auto ends = read<std::int64_t>(call.input(2));
  const auto axes = ints_or(call.optional(3), counting(std::ssize(starts)));
  const auto steps = ints_or(call.optional(4), Ints(starts.size(), 1));
  auto indices = everything(x.shape);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    FLEETFIT_ASSIGN(const auto axis, resolve_axis(axes[i], x.shape.size()));
    indices[axis] = sliced(x.shape[axis], {starts[i], ends[i], steps[i]});
  }
  return one(reshaped(pick(x, std::move(indices)), call.result().shape));
}

Values run(const Pad& op, const Call& call) {
  const auto& x = call.input(0);
  const auto pads = read<std::int64_t>(call.input(1));
  FLEETFIT_ASSIGN(auto indices, padded(op.mode, pads, x.shape, call.result().shape));
  const auto* value = call.optional(2);
  if (value == nullptr) return one(pick(x, std::move(indices)));
  if (value->dtype != x.dtype || elements(value->shape) != 1) {
    return misfit("the padding is not one number of the tensor's type");
  }
  return one(pick(x, std::move(indices), value->data.bytes()));
}

Values run(const Expand&, const Call& call) {
  return one(broadcast(call.input(0), call.result().shape));
}

Values run(const Tile&, const Call& call) {
  auto indices = everything(call.result().shape);
  for (std::size_t axis = 0; axis < indices.size(); ++axis) {
    for (auto& index : indices[axis]) index %= call.input(0).shape[axis];
  }
  return one(pick(call.input(0), std::move(indices)));
}

Values run(const Gather& op, const Call& call) {
  const auto& x = call.input(0);
  FLEETFIT_ASSIGN(const auto axis, resolve_axis(op.axis, x.shape.size()));
  auto chosen = read<std::int64_t>(call.input(1));
  const auto extent = x.shape[axis];
  for (auto& index : chosen) {
    if (index < -extent || index >= extent) {
      return misfit("there is no index {} among {}", index, extent);
    }
    if (index < 0) index += extent;
  }
  auto indices = everything(x.shape);
  indices[axis] = std::move(chosen);
  return one(reshaped(pick(x, std::move(indices)), call.result().shape));
}

Values run(const DepthToSpace& op, const Call& call) {
  const auto x = to_channels_first(call.input(0).shape, op.layout);
  const auto b = op.block;
  const auto channels = x[1] / (b * b);
  if (op.column_row_depth) {
    return regroup_image(call, op.layout, {x[0], channels, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3});
  }
  return regroup_image(call, op.layout, {x[0], b, b, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2});
}

Values run(const SpaceToDepth& op, const Call& call) {
  const auto x = to_channels_first(call.input(0).shape, op.layout);
  const auto b = op.block;
  return regroup_image(call, op.layout, {x[0], x[1], x[2] / b, b, x[3] / b, b}, {0, 3, 5, 1, 2, 4});
}

Values run(const ChannelShuffle& op, const Call& call) {
  const auto x = to_channels_first(call.input(0).shape, op.layout);
  const auto rest = elements(Shape(x.begin() + 2, x.end()));
  return regroup_image(call, op.layout, {x[0], op.groups, x[1] / op.groups, rest}, {0, 2, 1, 3});
}

Values run(const SpaceToBatch&, const Call& call) {
  const auto block = read<std::int64_t>(call.input(1));
  const auto margins = read<std::int64_t>(call.input(2));
  const auto spatial = std::ssize(block);
  const auto& x = call.input(0);
  Ints pads(x.shape.size(), 0);
  Shape padded_shape = x.shape;
  for (std::int64_t i = 0; i < spatial; ++i) {
    pads[i + 1] = margins[2 * i];
    padded_shape[i + 1] += margins[2 * i] + margins[2 * i + 1];
  }
  FLEETFIT_ASSIGN(auto indices, padded(PadMode::constant, pads, x.shape, padded_shape));

  // batch, (rows, block) for each spatial dimension, rest -> blocks, batch, rows, rest
  Shape split{x.shape[0]};
  Ints perm;
  for (std::int64_t i = 0; i < spatial; ++i) {
    split.push_back(padded_shape[i + 1] / block[i]);
    split.push_back(block[i]);
    perm.push_back(2 * i + 2);
  }
  perm.push_back(0);
  for (std::int64_t i = 0; i < spatial; ++i) perm.push_back(2 * i + 1);
  split.push_back(elements(Shape(x.shape.begin() + spatial + 1, x.shape.end())));
  perm.push_back(2 * spatial + 1);
  return one(regrouped(pick(x, std::move(indices)), split, perm, call.result().shape));
}

Values run(const BatchToSpace&, const Call& call) {
  const auto block = read<std::int64_t>(call.input(1));
  const auto crops = read<std::int64_t>(call.input(2));
  const auto spatial = std::ssize(block);
  const auto& x = call.input(0);
  const auto batch = x.shape[0] / elements(block);

  // blocks, batch, rows, rest -> batch, (rows, block) for each spatial dimension, rest
  Shape split = block;
  Shape uncropped{batch};
  Ints perm{spatial};
  split.push_back(batch);
  for (std::int64_t i = 0; i < spatial; ++i) {
    split.push_back(x.shape[i + 1]);
    uncropped.push_back(x.shape[i + 1] * block[i]);
    perm.push_back(spatial + 1 + i);
    perm.push_back(i);
  }
  split.push_back(elements(Shape(x.shape.begin() + spatial + 1, x.shape.end())));
  perm.push_back(2 * spatial + 1);
  uncropped.insert(uncropped.end(), x.shape.begin() + spatial + 1, x.shape.end());

  auto indices = everything(call.result().shape);
  for (std::int64_t i = 0; i < spatial; ++i) {
    for (auto& index : indices[i + 1]) index += crops[2 * i];
  }
  return one(pick(regrouped(x, split, perm, uncropped), std::move(indices)));
}

}  // namespace fleetfit::graph::interpreter
