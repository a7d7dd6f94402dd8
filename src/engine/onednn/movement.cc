// Changes of format, and tensors joined along their channels.
#include <algorithm>
#include <array>

#include "engine/onednn/onednn.h"

namespace fleetfit::engine::onednn {
namespace {

KernelPtr make_reorder(const Task& task) {
  const Operand& from = task.inputs[0];
  const Operand& to = task.outputs[0];
  if (from.constant || !data_type(from.dtype) || from.format == to.format) return nullptr;
  const auto source = image_desc(from, graph::Layout::nchw);
  const auto result = image_desc(to, graph::Layout::nchw);
  const dnnl::reorder::primitive_desc chosen(cpu(), source, cpu(), result, attributes());
  return primitive_kernel(chosen, dnnl::reorder(chosen),
                          {{DNNL_ARG_FROM, Argument::Role::input, 0, source},
                           {DNNL_ARG_TO, Argument::Role::output, 0, result}});
}

KernelPtr make_concat(const Task& task, const graph::Concat& concat) {
  if (task.node.activation || task.outputs[0].format != Format::blocked) return nullptr;
  std::vector<dnnl::memory::desc> sources;
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < task.inputs.size(); ++i) {
    if (task.inputs[i].constant) return nullptr;
    sources.push_back(image_desc(task.inputs[i], graph::Layout::nchw));
    arguments.push_back(
        {DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i), Argument::Role::input, i, sources.back()});
  }
  const auto result = image_desc(task.outputs[0], graph::Layout::nchw);
  arguments.push_back({DNNL_ARG_DST, Argument::Role::output, 0, result});
  const dnnl::concat::primitive_desc chosen(result, static_cast<int>(concat.axis), sources, cpu(),
                                            attributes());
  return primitive_kernel(chosen, dnnl::concat(chosen), std::move(arguments));
}

}  // namespace

std::span<const KernelEntry> movement_kernels() {
  static constexpr std::array kEntries{
      entry<graph::Identity>(make_reorder),
      entry<graph::Concat, make_concat>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::onednn
