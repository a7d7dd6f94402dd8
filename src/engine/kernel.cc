#include "engine/kernel.h"

namespace fleetfit::engine {

std::size_t storage_bytes(const Operand& operand) {
  auto shape = operand.shape;
  constexpr std::int64_t kBlock = 16;
  if (operand.format == Format::blocked) shape[1] = (shape[1] + kBlock - 1) / kBlock * kBlock;
  return static_cast<std::size_t>(graph::elements(shape)) * graph::size_of(operand.dtype);
}

bool is_joined_shuffle(const Task& task) {
  return std::holds_alternative<graph::ChannelShuffle>(task.node.op) &&
         task.inputs.size() + task.outputs.size() > 2;
}

}  // namespace fleetfit::engine
