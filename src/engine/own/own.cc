#include "engine/own/own.h"

#include <algorithm>

#include "engine/libraries.h"

namespace fleetfit::engine {
namespace own {
namespace {

const OwnKernels* kernels_of(const Task& task) {
  static const graph::OperatorTable<OwnKernels> kTable{
      convolution_kernels(),   dense_kernels(),   elementwise_kernels(), movement_kernels(),
      normalization_kernels(), padding_kernels(), pooling_kernels(),     quantized_kernels(),
      reduction_kernels(),     resize_kernels()};
  return kTable.find(task.node.op);
}

/// Tasks on tensors that stand for themselves.
KernelPtr make_on_plain(const Task& task) {
  const auto* entry = kernels_of(task);
  if (entry == nullptr || entry->plain == nullptr) return nullptr;
  if (entry->activates) return entry->plain(task);
  Task inner = task;
  inner.node.activation = {};
  return activated(entry->plain(inner), task.node.activation, task.outputs[0]);
}

KernelPtr make_kernel(const Task& task) {
  const auto* entry = kernels_of(task);
  if (entry == nullptr || (task.adds_last_input && !entry->adds)) return nullptr;
  if (entry->takes_all) return entry->plain(task);
  if (!touches_quantized(task)) return make_on_plain(task);
  if (entry->stored != nullptr && (entry->activates || !task.node.activation)) {
    if (auto kernel = entry->stored(task)) return kernel;
  }
  return entry->on_reals ? make_on_reals(task, make_on_plain) : nullptr;
}

}  // namespace

bool keeps_stored(const Task& task) {
  const auto& common = task.inputs[0].quantization;
  if (common && common->axis) return false;
  const auto fits = [&](const Operand& operand) {
    return !operand.quantization || operand.quantization == common;
  };
  const bool joins = std::holds_alternative<graph::Concat>(task.node.op) ||
                     std::holds_alternative<graph::Stack>(task.node.op);
  return std::ranges::all_of(task.outputs, fits) &&
         std::ranges::all_of(task.inputs, [&](const Operand& operand) {
           return !operand.present || (joins ? operand.quantization == common : fits(operand));
         });
}

Memory memory_of(const Task& task, const Bindings& bindings) {
  Memory memory{
      .inputs = bindings.inputs, .outputs = bindings.outputs, .scratch = bindings.scratch};
  memory.inputs.resize(task.inputs.size(), nullptr);
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (task.inputs[i].constant) memory.inputs[i] = task.inputs[i].constant->bytes().data();
  }
  return memory;
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
  return std::max<std::int64_t>(1, kWorthAThread / std::max<std::int64_t>(1, cost));
}

}  // namespace own

KernelPtr make_own_kernel(const Task& task) {
  return all_plain(task) && !task.outputs.empty() ? own::make_kernel(task) : nullptr;
}

}  // namespace fleetfit::engine
