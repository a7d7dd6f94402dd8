// Operators that copy elements and never look at them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "engine/own/copies.h"
#include "engine/own/own.h"

namespace fleetfit::engine::own {
namespace {

using graph::Layout;

/// A copy between an input and an output, with the bytes that lie before the box on both sides.
struct Move {
  StridedCopy copy;
  std::size_t input = 0;
  std::size_t output = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

using Moves = std::optional<std::vector<Move>>;

std::int64_t size_of(const Operand& operand) {
  return static_cast<std::int64_t>(graph::size_of(operand.dtype));
}

StridedCopy copy_of(std::vector<CopyDim> dims, const Operand& operand) {
  return {std::move(dims), graph::size_of(operand.dtype)};
}

Moves one_move(const Task& task, std::vector<CopyDim> dims, std::int64_t from = 0) {
  const Operand& x = task.inputs[0];
  return std::vector<Move>{{.copy = copy_of(std::move(dims), x), .from = from * size_of(x)}};
}

/// The same elements in the same order.
Moves whole(const Task& task) {
  if (task.outputs.size() != 1) return std::nullopt;
  return one_move(task, {{graph::elements(task.inputs[0].shape), 1, 1}});
}

Moves regroup(const Task& task, const Shape& split, const Ints& perm) {
  return one_move(task, permuted_dims(split, perm));
}

Moves transpose(const Task& task, const graph::Transpose& op) {
  const Shape& shape = task.inputs[0].shape;
  Ints perm = op.perm;
  if (perm.empty()) {
    perm.resize(shape.size());
    std::iota(perm.rbegin(), perm.rend(), std::int64_t{0});
  }
  for (auto& axis : perm) axis = axis < 0 ? axis + std::ssize(shape) : axis;
  return regroup(task, shape, perm);
}

/// Parts of the result lie one behind the other along an axis that the inputs share or that is new.
Moves join(const Task& task, std::size_t axis) {
  const Operand& result = task.outputs[0];
  const Along all = along(result.shape, axis);
  std::vector<Move> moves;
  std::int64_t done = 0;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    const Operand& part = task.inputs[i];
    if (!part.present || part.dtype != result.dtype) return std::nullopt;
    const std::int64_t row = graph::elements(part.shape) / std::max<std::int64_t>(all.outer, 1);
    if (row > 0) {
      moves.push_back(
          {.copy = copy_of({{all.outer, row, all.extent * all.inner}, {row, 1, 1}}, part),
           .input = i,
           .to = done * size_of(part)});
    }
    done += row;
  }
  return moves;
}

/// Outputs take what follows one another along an axis of the input.
Moves cut(const Task& task, std::size_t axis) {
  const Operand& x = task.inputs[0];
  const Along all = along(x.shape, axis);
  std::vector<Move> moves;
  std::int64_t done = 0;
  for (std::size_t i = 0; i < task.outputs.size(); ++i) {
    const std::int64_t row =
        graph::elements(task.outputs[i].shape) / std::max<std::int64_t>(all.outer, 1);
    if (row > 0 && task.outputs[i].present) {
      moves.push_back({.copy = copy_of({{all.outer, all.extent * all.inner, row}, {row, 1, 1}}, x),
                       .output = i,
                       .from = done * size_of(x)});
    }
    done += row;
  }
  return moves;
}

/// The first index that a slice takes. How many follow is known from the result's shape.
std::int64_t first_index(std::int64_t start, std::int64_t extent, std::int64_t step) {
  if (start < 0) start += extent;
  return std::clamp<std::int64_t>(start, 0, step > 0 ? extent : extent - 1);
}

Moves slice(const Task& task, const graph::Slice& op) {
  const Shape& shape = task.inputs[0].shape;
  const auto starts = constant_ints(task.inputs[1]);
  if (!starts) return std::nullopt;
  Ints axes = counting(std::ssize(*starts));
  Ints steps(starts->size(), 1);
  for (auto [position, values] : {std::pair(3U, &axes), std::pair(4U, &steps)}) {
    if (!has_input(task, position)) continue;
    const auto given = constant_ints(task.inputs[position]);
    if (!given || given->size() != starts->size()) return std::nullopt;
    *values = *given;
  }
  // The result's extents with the dropped ones put back.
  Shape result = task.outputs[0].shape;
  Ints dropped = op.squeezed;
  for (auto& axis : dropped) axis = axis < 0 ? axis + std::ssize(shape) : axis;
  std::ranges::sort(dropped);
  for (const auto axis : dropped) result.insert(result.begin() + axis, 1);

  const Ints from = strides_of(shape);
  const Ints to = strides_of(result);
  std::vector<CopyDim> dims;
  for (std::size_t i = 0; i < shape.size(); ++i) dims.push_back({result[i], from[i], to[i]});
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = resolve_axis(axes[i], shape.size());
    if (!axis) return std::nullopt;
    offset += first_index((*starts)[i], shape[*axis], steps[i]) * from[*axis];
    if (result[*axis] > 1) dims[*axis].from *= steps[i];
  }
  return one_move(task, std::move(dims), offset);
}

Moves expand(const Task& task, const graph::Expand&) {
  const Shape& result = task.outputs[0].shape;
  Shape shape(result.size() - task.inputs[0].shape.size(), 1);
  shape.insert(shape.end(), task.inputs[0].shape.begin(), task.inputs[0].shape.end());
  const Ints from = strides_of(shape);
  const Ints to = strides_of(result);
  std::vector<CopyDim> dims;
  for (std::size_t i = 0; i < result.size(); ++i) {
    dims.push_back({result[i], shape[i] == 1 ? 0 : from[i], to[i]});
  }
  return one_move(task, std::move(dims));
}

Moves tile(const Task& task, const graph::Tile&) {
  const Shape& shape = task.inputs[0].shape;
  const Shape& result = task.outputs[0].shape;
  const Ints from = strides_of(shape);
  const Ints to = strides_of(result);
  std::vector<CopyDim> dims;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    dims.push_back({result[i] / shape[i], 0, to[i] * shape[i]});
    dims.push_back({shape[i], from[i], to[i]});
  }
  return one_move(task, std::move(dims));
}

Moves channel_shuffle(const Task& task, const graph::ChannelShuffle& op) {
  const Shape& x = task.inputs[0].shape;
  if (op.layout == Layout::nhwc) {
    const std::int64_t pixels = graph::elements(x) / x.back();
    return regroup(task, {pixels, op.groups, x.back() / op.groups}, {0, 2, 1});
  }
  const std::int64_t rest = graph::elements(x) / (x[0] * x[1]);
  return regroup(task, {x[0], op.groups, x[1] / op.groups, rest}, {0, 2, 1, 3});
}

Moves depth_to_space(const Task& task, const graph::DepthToSpace& op) {
  const Shape& x = task.inputs[0].shape;
  const std::int64_t b = op.block;
  if (x.size() != 4) return std::nullopt;
  if (op.layout == Layout::nhwc) {
    const std::int64_t channels = x[3] / (b * b);
    return op.column_row_depth
               ? regroup(task, {x[0], x[1], x[2], channels, b, b}, {0, 1, 4, 2, 5, 3})
               : regroup(task, {x[0], x[1], x[2], b, b, channels}, {0, 1, 3, 2, 4, 5});
  }
  const std::int64_t channels = x[1] / (b * b);
  return op.column_row_depth
             ? regroup(task, {x[0], channels, b, b, x[2], x[3]}, {0, 1, 4, 2, 5, 3})
             : regroup(task, {x[0], b, b, channels, x[2], x[3]}, {0, 3, 4, 1, 5, 2});
}

Moves space_to_depth(const Task& task, const graph::SpaceToDepth& op) {
  const Shape& x = task.inputs[0].shape;
  const std::int64_t b = op.block;
  if (x.size() != 4) return std::nullopt;
  if (op.layout == Layout::nhwc) {
    return regroup(task, {x[0], x[1] / b, b, x[2] / b, b, x[3]}, {0, 1, 3, 2, 4, 5});
  }
  return regroup(task, {x[0], x[1], x[2] / b, b, x[3] / b, b}, {0, 3, 5, 1, 2, 4});
}

/// Runs the copies one after the other.
KernelPtr copies(const Task& task, Moves moves) {
  if (!moves) return nullptr;
  return function_kernel(task, "copy", [moves = *std::move(moves)](const Memory& memory) {
    for (const Move& move : moves) {
      move.copy.run(memory.inputs[move.input] + move.from, memory.outputs[move.output] + move.to);
    }
  });
}

template <class Op, Moves (*moves)(const Task&, const Op&)>
KernelPtr make_copies(const Task& task, const Op& op) {
  return copies(task, moves(task, op));
}

template <class Op>
Moves whole_of(const Task& task, const Op&) {
  return whole(task);
}

template <class Op>
Moves join_along(const Task& task, const Op& op) {
  const auto axis = resolve_axis(op.axis, task.outputs[0].shape.size());
  return axis ? join(task, *axis) : std::nullopt;
}

template <class Op>
Moves cut_along(const Task& task, const Op& op) {
  const auto axis = resolve_axis(op.axis, task.inputs[0].shape.size());
  return axis ? cut(task, *axis) : std::nullopt;
}

KernelPtr make_shuffle(const Task& task, const graph::ChannelShuffle& op) {
  return is_joined_shuffle(task) ? make_joined_shuffle(task, op)
                                 : copies(task, channel_shuffle(task, op));
}

KernelPtr make_stored_concat(const Task& task, const graph::Concat& op) {
  constexpr auto kCopies = make_copies<graph::Concat, join_along<graph::Concat>>;
  return keeps_stored(task) ? make_movement<graph::Concat, kCopies>(task)
                            : make_quantized_concat(task, op);
}

/// Copies slices of an axis by indices that are known only when it runs.
struct Gathering {
  Along source;
  std::int64_t slice_bytes = 0;
  std::int64_t count = 0;  ///< of indices

  /// The index that is out of range, if one is.
  template <class Index>
  std::optional<std::int64_t> run(const std::byte* from, const Index* indices,
                                  std::byte* to) const {
    for (std::int64_t i = 0; i < count; ++i) {
      if (indices[i] < -source.extent || indices[i] >= source.extent) return indices[i];
    }
    parallel_each(source.outer * count, slice_bytes / 4 + 4, [&](std::int64_t i) {
      std::int64_t index = indices[i % count];
      if (index < 0) index += source.extent;
      std::memcpy(to + i * slice_bytes, from + (i / count * source.extent + index) * slice_bytes,
                  static_cast<std::size_t>(slice_bytes));
    });
    return std::nullopt;
  }
};

KernelPtr make_gather(const Task& task, const graph::Gather& op) {
  const Operand& x = task.inputs[0];
  const DType index_type = task.inputs[1].dtype;
  const auto axis = resolve_axis(op.axis, x.shape.size());
  if (!axis || (index_type != DType::i32 && index_type != DType::i64)) return nullptr;
  const Along source = along(x.shape, *axis);
  const Gathering gathering{
      .source = source,
      .slice_bytes = source.inner * static_cast<std::int64_t>(graph::size_of(x.dtype)),
      .count = graph::elements(task.inputs[1].shape)};
  return function_kernel(task, "gather", [=](const Memory& memory) -> Status {
    const auto wrong =
        index_type == DType::i32
            ? gathering.run(memory.inputs[0], memory.in<std::int32_t>(1), memory.outputs[0])
            : gathering.run(memory.inputs[0], memory.in<std::int64_t>(1), memory.outputs[0]);
    if (!wrong) return {};
    return fail(ErrorCode::invalid_input,
                fmt::format("there is no index {} among {}", *wrong, gathering.source.extent));
  });
}

/// Copies that follow from the operator by `moves`.
template <class Op, Moves (*moves)(const Task&, const Op&)>
constexpr OwnKernels copied() {
  return movement<Op, make_copies<Op, moves>>();
}

constexpr OwnKernels concat() {
  auto concat = copied<graph::Concat, join_along<graph::Concat>>();
  concat.stored = make_of<graph::Concat, make_stored_concat>;
  return concat;
}

}  // namespace

std::span<const OwnKernels> movement_kernels() {
  static constexpr std::array kEntries{
      copied<graph::Reshape, whole_of<graph::Reshape>>(),
      copied<graph::Flatten, whole_of<graph::Flatten>>(),
      copied<graph::Squeeze, whole_of<graph::Squeeze>>(),
      copied<graph::Unsqueeze, whole_of<graph::Unsqueeze>>(),
      copied<graph::Identity, whole_of<graph::Identity>>(),
      copied<graph::Dropout, whole_of<graph::Dropout>>(),
      copied<graph::Transpose, transpose>(),
      copied<graph::Slice, slice>(),
      copied<graph::Expand, expand>(),
      copied<graph::Tile, tile>(),
      copied<graph::DepthToSpace, depth_to_space>(),
      copied<graph::SpaceToDepth, space_to_depth>(),
      movement<graph::ChannelShuffle, make_shuffle>(),
      concat(),
      copied<graph::Stack, join_along<graph::Stack>>(),
      copied<graph::Split, cut_along<graph::Split>>(),
      copied<graph::Unstack, cut_along<graph::Unstack>>(),
      movement<graph::Gather, make_gather>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
