// Padding, and blocks of space moved to the batch and back.
#include <array>
#include <cstring>

#include "engine/own/copies.h"
#include "engine/own/own.h"

namespace fleetfit::engine::own {
namespace {

using graph::PadMode;

/// The index that an index before or behind the extent takes.
std::int64_t padded_index(PadMode mode, std::int64_t index, std::int64_t extent) {
  if (index >= 0 && index < extent) return index;
  if (mode == PadMode::constant) return kFill;
  if (mode == PadMode::edge) return index < 0 ? 0 : extent - 1;
  if (extent == 1) return 0;
  const std::int64_t period = 2 * (extent - 1);
  const std::int64_t within = ((index % period) + period) % period;
  return within < extent ? within : period - within;
}

std::vector<Ints> padded(PadMode mode, const Ints& begins, const Shape& from, const Shape& to) {
  std::vector<Ints> indices;
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    auto& list = indices.emplace_back(counting(to[axis]));
    for (auto& index : list) index = padded_index(mode, index - begins[axis], from[axis]);
  }
  return indices;
}

/// The bytes of an element that stands for zero.
std::vector<std::byte> zero_of(const Operand& operand) {
  std::vector<std::byte> bytes(graph::size_of(operand.dtype));
  if (is_quantized(operand))
    bytes[0] = static_cast<std::byte>(operand.quantization->zero_points[0]);
  return bytes;
}

std::optional<std::vector<std::byte>> fill_of(const Task& task) {
  const Operand& x = task.inputs[0];
  if (!has_input(task, 2)) return zero_of(x);
  const Operand& value = task.inputs[2];
  if (!value.constant || value.dtype != x.dtype || value.quantization != x.quantization ||
      graph::elements(value.shape) != 1) {
    return std::nullopt;
  }
  const auto bytes = value.constant->bytes();
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

/// What both operators on blocks of space know.
struct Blocks {
  Ints block;
  Ints margins;
  std::size_t spatial = 0;
  std::int64_t rest = 1;
};

std::optional<Blocks> blocks_of(const Task& task) {
  const auto block = constant_ints(task.inputs[1]);
  const auto margins = constant_ints(task.inputs[2]);
  const Shape& x = task.inputs[0].shape;
  if (!block || !margins || margins->size() != 2 * block->size() || x.size() <= block->size()) {
    return std::nullopt;
  }
  const auto first_rest = x.begin() + static_cast<std::ptrdiff_t>(block->size()) + 1;
  return Blocks{*block, *margins, block->size(), graph::elements(Shape(first_rest, x.end()))};
}

KernelPtr make_pad(const Task& task, const graph::Pad& op) {
  const auto pads = constant_ints(task.inputs[1]);
  auto fill = fill_of(task);
  const Shape& shape = task.inputs[0].shape;
  if (!pads || !fill || pads->size() != 2 * shape.size() || graph::elements(shape) == 0) {
    return nullptr;
  }
  PickedCopy copy(shape, padded(op.mode, *pads, shape, task.outputs[0].shape), *std::move(fill));
  return function_kernel(task, "pad", [copy = std::move(copy)](const Memory& memory) {
    copy.run(memory.inputs[0], memory.outputs[0]);
  });
}

KernelPtr make_space_to_batch(const Task& task, const graph::SpaceToBatch&) {
  const auto blocks = blocks_of(task);
  if (!blocks) return nullptr;
  const Operand& x = task.inputs[0];
  Shape padded_shape = x.shape;
  Ints begins(x.shape.size(), 0);
  // batch, (rows, block) for each spatial dimension, rest -> blocks, batch, rows, rest
  Shape split{x.shape[0]};
  Ints perm;
  Ints rows;
  for (std::size_t i = 0; i < blocks->spatial; ++i) {
    begins[i + 1] = blocks->margins[2 * i];
    padded_shape[i + 1] += blocks->margins[2 * i] + blocks->margins[2 * i + 1];
    split.push_back(padded_shape[i + 1] / blocks->block[i]);
    split.push_back(blocks->block[i]);
    perm.push_back(static_cast<std::int64_t>(2 * i + 2));
    rows.push_back(static_cast<std::int64_t>(2 * i + 1));
  }
  perm.push_back(0);
  perm.insert(perm.end(), rows.begin(), rows.end());
  split.push_back(blocks->rest);
  perm.push_back(static_cast<std::int64_t>(2 * blocks->spatial + 1));

  PickedCopy pad(x.shape, padded(PadMode::constant, begins, x.shape, padded_shape), zero_of(x));
  StridedCopy regroup(permuted_dims(split, perm), graph::size_of(x.dtype));
  const auto scratch =
      static_cast<std::size_t>(graph::elements(padded_shape)) * graph::size_of(x.dtype);
  return function_kernel(
      task, "space to batch",
      [pad = std::move(pad), regroup = std::move(regroup)](const Memory& memory) {
        pad.run(memory.inputs[0], memory.scratch);
        regroup.run(memory.scratch, memory.outputs[0]);
      },
      scratch);
}

KernelPtr make_batch_to_space(const Task& task, const graph::BatchToSpace&) {
  const auto blocks = blocks_of(task);
  if (!blocks) return nullptr;
  const Operand& x = task.inputs[0];
  const std::int64_t batch = x.shape[0] / graph::elements(blocks->block);
  // blocks, batch, rows, rest -> batch, (rows, block) for each spatial dimension, rest
  const auto spatial = static_cast<std::int64_t>(blocks->spatial);
  Shape split = blocks->block;
  Shape uncropped{batch};
  Ints perm{spatial};
  split.push_back(batch);
  for (std::size_t i = 0; i < blocks->spatial; ++i) {
    split.push_back(x.shape[i + 1]);
    uncropped.push_back(x.shape[i + 1] * blocks->block[i]);
    perm.push_back(spatial + 1 + static_cast<std::int64_t>(i));
    perm.push_back(static_cast<std::int64_t>(i));
  }
  split.push_back(blocks->rest);
  perm.push_back(2 * spatial + 1);
  uncropped.insert(uncropped.end(), x.shape.begin() + spatial + 1, x.shape.end());

  std::vector<Ints> kept;
  for (const auto extent : task.outputs[0].shape) kept.push_back(counting(extent));
  for (std::size_t i = 0; i < blocks->spatial; ++i) {
    for (auto& index : kept[i + 1]) index += blocks->margins[2 * i];
  }
  StridedCopy regroup(permuted_dims(split, perm), graph::size_of(x.dtype));
  PickedCopy crop(uncropped, kept, zero_of(x));
  return function_kernel(
      task, "batch to space",
      [crop = std::move(crop), regroup = std::move(regroup)](const Memory& memory) {
        regroup.run(memory.inputs[0], memory.scratch);
        crop.run(memory.scratch, memory.outputs[0]);
      },
      storage_bytes(x));
}

}  // namespace

std::span<const OwnKernels> padding_kernels() {
  static constexpr std::array kEntries{
      movement<graph::Pad, make_pad>(),
      movement<graph::SpaceToBatch, make_space_to_batch>(),
      movement<graph::BatchToSpace, make_batch_to_space>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
