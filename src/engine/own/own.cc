#include "engine/own/own.h"

#include <algorithm>

#include "engine/libraries.h"
#include "engine/own/quantized.h"

namespace fleetfit::engine {
namespace own {
namespace {

bool is_plain(const Operand& operand) {
  return !operand.present ||
         (operand.format == Format::plain && graph::elements(operand.shape) > 0);
}

const OwnKernels* kernels_of(const Task& task) {
  static const graph::OperatorTable<OwnKernels> kTable{
      convolution_kernels(), dense_kernels(),         elementwise_kernels(), gather_kernels(),
      movement_kernels(),    normalization_kernels(), padding_kernels(),     pooling_kernels(),
      quantized_kernels(),   reduction_kernels(),     resize_kernels(),      unary_kernels()};
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

}  // namespace own

KernelPtr make_own_kernel(const Task& task) {
  if (!std::ranges::all_of(task.inputs, own::is_plain) ||
      !std::ranges::all_of(task.outputs, own::is_plain)) {
    return nullptr;
  }
  return task.outputs.empty() ? nullptr : own::make_kernel(task);
}

}  // namespace fleetfit::engine
