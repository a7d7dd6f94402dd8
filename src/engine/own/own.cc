#include "engine/own/own.h"

#include <algorithm>

#include "engine/libraries.h"

namespace fleetfit::engine {
namespace own {
namespace {

using graph::Overloaded;

bool is_plain(const Operand& operand) {
  return !operand.present ||
         (operand.format == Format::plain && graph::elements(operand.shape) > 0);
}

/// Whether results may be copies of stored numbers: all of them mean the same.
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

KernelPtr make_movement(const Task& task) {
  if (task.inputs.empty() || !task.inputs[0].present || !keeps_stored(task)) return nullptr;
  return std::visit(Overloaded{
                        [&](const graph::Pad& op) { return make_pad(task, op); },
                        [&](const graph::SpaceToBatch&) { return make_space_to_batch(task); },
                        [&](const graph::BatchToSpace&) { return make_batch_to_space(task); },
                        [&](const graph::Gather& op) { return make_gather(task, op); },
                        [&](const auto&) { return make_move(task); },
                    },
                    task.node.op);
}

KernelPtr make_kernel(const Task& task) { return make_movement(task); }

}  // namespace
}  // namespace own

KernelPtr make_own_kernel(const Task& task) {
  if (!std::ranges::all_of(task.inputs, own::is_plain) ||
      !std::ranges::all_of(task.outputs, own::is_plain)) {
    return nullptr;
  }
  if (task.adds_last_input || task.node.activation) return nullptr;
  return own::make_kernel(task);
}

}  // namespace fleetfit::engine
