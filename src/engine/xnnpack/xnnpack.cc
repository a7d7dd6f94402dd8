#include "engine/xnnpack/xnnpack.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engine/libraries.h"

namespace fleetfit::engine {
namespace {

/// Whether the library can be used on this CPU at all.
bool is_ready() {
  static const bool ready = xnn_initialize(nullptr) == xnn_status_success;
  return ready;
}

bool is_plain(const Operand& operand) {
  return operand.format == Format::plain &&
         (!operand.present || graph::elements(operand.shape) > 0);
}

/// What the library picks its kernels by.
std::string instruction_set() {
#if defined(__x86_64__)
  for (const auto& [name, has] :
       {std::pair{"avx512skx", __builtin_cpu_supports("avx512bw") != 0 &&
                                   __builtin_cpu_supports("avx512dq") != 0 &&
                                   __builtin_cpu_supports("avx512vl") != 0},
        std::pair{"avx512f", __builtin_cpu_supports("avx512f") != 0},
        std::pair{"avx2", __builtin_cpu_supports("avx2") != 0},
        std::pair{"fma3", __builtin_cpu_supports("fma") != 0},
        std::pair{"avx", __builtin_cpu_supports("avx") != 0},
        std::pair{"sse4.1", __builtin_cpu_supports("sse4.1") != 0}}) {
    if (has) return name;
  }
  return "sse2";
#elif defined(__aarch64__)
  return "neon";
#else
  return "scalar";
#endif
}

const graph::OperatorTable<KernelEntry>& table() {
  static const graph::OperatorTable<KernelEntry> kTable{
      xnnpack::convolution_kernels(), xnnpack::elementwise_kernels(), xnnpack::movement_kernels(),
      xnnpack::pooling_kernels()};
  return kTable;
}

}  // namespace

KernelPtr make_xnnpack_kernel(const Task& task) {
  if (task.adds_last_input || task.outputs.empty() || !std::ranges::all_of(task.inputs, is_plain) ||
      !std::ranges::all_of(task.outputs, is_plain) || !is_ready()) {
    return nullptr;
  }
  const auto* entry = table().find(task.node.op);
  return entry != nullptr ? entry->make(task) : nullptr;
}

std::string xnnpack_identity() {
  // The library has no version; another one hardly ever has the same length.
  Dl_info library{};
  std::error_code error;
  std::uintmax_t bytes = 0;
  if (dladdr(reinterpret_cast<const void*>(&xnn_initialize), &library) != 0)
    bytes = std::filesystem::file_size(library.dli_fname, error);
  return fmt::format("xnnpack of {} bytes isa {}", error ? 0 : bytes, instruction_set());
}

}  // namespace fleetfit::engine
