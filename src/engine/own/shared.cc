#include <algorithm>

#include "engine/own/own.h"

namespace fleetfit::engine::own {

Memory memory_of(const Task& task, const Bindings& bindings) {
  Memory memory{
      .inputs = bindings.inputs, .outputs = bindings.outputs, .scratch = bindings.scratch};
  memory.inputs.resize(task.inputs.size(), nullptr);
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (task.inputs[i].constant) memory.inputs[i] = task.inputs[i].constant->bytes().data();
  }
  return memory;
}

bool has_input(const Task& task, std::size_t i) {
  return i < task.inputs.size() && task.inputs[i].present;
}

bool is_real(const Operand& operand) {
  return operand.dtype == DType::f32 && !operand.quantization;
}

bool is_quantized(const Operand& operand) {
  return (operand.dtype == DType::i8 || operand.dtype == DType::u8) && operand.quantization &&
         operand.quantization->scales.size() == 1 && operand.quantization->zero_points.size() == 1;
}

bool all_real(const Task& task) {
  const auto fits = [](const Operand& operand) { return !operand.present || is_real(operand); };
  return std::ranges::all_of(task.inputs, fits) && std::ranges::all_of(task.outputs, fits);
}

std::optional<Ints> constant_ints(const Operand& operand) {
  if (!operand.present || !operand.constant) return std::nullopt;
  if (operand.dtype == DType::i64) {
    const auto values = operand.constant->as<std::int64_t>();
    return Ints(values.begin(), values.end());
  }
  if (operand.dtype != DType::i32) return std::nullopt;
  const auto values = operand.constant->as<std::int32_t>();
  return Ints(values.begin(), values.end());
}

std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank) {
  const auto extent = static_cast<std::int64_t>(rank);
  if (axis < -extent || axis >= extent) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + extent : axis);
}

Ints strides_of(const Shape& shape) {
  Ints strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Along along(const Shape& shape, std::size_t axis) {
  const auto at = shape.begin() + static_cast<std::ptrdiff_t>(axis);
  return {graph::elements(Shape(shape.begin(), at)), *at,
          graph::elements(Shape(at + 1, shape.end()))};
}

std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

std::int64_t grain_of(std::int64_t cost) {
  // Waking a thread takes some microseconds, in which it could take this many steps.
  constexpr std::int64_t kSteps = 16384;
  return std::max<std::int64_t>(1, kSteps / std::max<std::int64_t>(1, cost));
}

}  // namespace fleetfit::engine::own
