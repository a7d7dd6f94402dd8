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

}  // namespace

KernelPtr make_xnnpack_kernel(const Task& task) {
  using graph::Overloaded;
  if (task.adds_last_input || task.outputs.empty() || !std::ranges::all_of(task.inputs, is_plain) ||
      !std::ranges::all_of(task.outputs, is_plain) || !is_ready()) {
    return nullptr;
  }
  return std::visit(
      Overloaded{
          [&](const graph::Conv& op) { return xnnpack::make_convolution(task, op); },
          [&](const graph::ConvTranspose& op) {
            return xnnpack::make_transposed_convolution(task, op);
          },
          [&](const graph::Gemm& op) { return xnnpack::make_gemm(task, op); },
          [&](const graph::MatMul& op) { return xnnpack::make_matmul(task, op); },
          [&](const graph::Pool& op) { return xnnpack::make_pool(task, op); },
          [&](const graph::GlobalPool& op) { return xnnpack::make_global_pool(task, op); },
          [&](const graph::Reduce& op) { return xnnpack::make_mean(task, op); },
          [&](const graph::Activate& op) { return xnnpack::make_activation(task, op); },
          [&](const graph::Unary& op) { return xnnpack::make_unary(task, op); },
          [&](const graph::PRelu&) { return xnnpack::make_prelu(task); },
          [&](const graph::Softmax& op) { return xnnpack::make_softmax(task, op); },
          [&](const graph::Elementwise& op) { return xnnpack::make_elementwise(task, op); },
          [&](const graph::Requantize&) { return xnnpack::make_conversion(task); },
          [&](const graph::Identity&) { return xnnpack::make_copy(task); },
          [&](const graph::Reshape&) { return xnnpack::make_copy(task); },
          [&](const graph::Flatten&) { return xnnpack::make_copy(task); },
          [&](const graph::Squeeze&) { return xnnpack::make_copy(task); },
          [&](const graph::Unsqueeze&) { return xnnpack::make_copy(task); },
          [&](const graph::Concat& op) { return xnnpack::make_concat(task, op); },
          [&](const graph::Split& op) { return xnnpack::make_split(task, op); },
          [&](const graph::Pad& op) { return xnnpack::make_pad(task, op); },
          [&](const graph::Resize& op) { return xnnpack::make_resize(task, op); },
          [&](const graph::DepthToSpace& op) { return xnnpack::make_depth_to_space(task, op); },
          [&](const graph::ChannelShuffle& op) { return xnnpack::make_channel_shuffle(task, op); },
          [](const auto&) { return KernelPtr(); },
      },
      task.node.op);
}

std::string xnnpack_identity() {
  // The library tells no version; another one hardly ever has the same length.
  Dl_info library{};
  std::error_code error;
  std::uintmax_t bytes = 0;
  if (dladdr(reinterpret_cast<const void*>(&xnn_initialize), &library) != 0)
    bytes = std::filesystem::file_size(library.dli_fname, error);
  return fmt::format("xnnpack of {} bytes isa {}", error ? 0 : bytes, instruction_set());
}

}  // namespace fleetfit::engine
