#include <fmt/format.h>

#include <array>
#include <cstring>

#include "engine/own/own.h"
#include "engine/threads.h"

namespace fleetfit::engine::own {
namespace {

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
    parallel(source.outer * count, grain_of(slice_bytes / 4 + 4),
             [&](std::int64_t begin, std::int64_t end) {
               for (std::int64_t i = begin; i < end; ++i) {
                 std::int64_t index = indices[i % count];
                 if (index < 0) index += source.extent;
                 std::memcpy(to + i * slice_bytes,
                             from + (i / count * source.extent + index) * slice_bytes,
                             static_cast<std::size_t>(slice_bytes));
               }
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

}  // namespace

std::span<const OwnKernels> gather_kernels() {
  static constexpr std::array kEntries{
      movement<graph::Gather, make_gather>(),
  };
  return kEntries;
}

}  // namespace fleetfit::engine::own
