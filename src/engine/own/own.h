#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/kernel.h"
#include "fleetfit/graph/operators.h"

/// What our own kernels share.
namespace fleetfit::engine::own {

using graph::DType;
using graph::Ints;
using graph::Shape;

/// Where the operands of a task lie while it runs, constants included; null for those left out.
struct Memory {
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;

  template <class T>
  const T* in(std::size_t i = 0) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* out(std::size_t i = 0) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
};

/// Completes the bindings of a task by its constants, which must outlive the result.
Memory memory_of(const Task& task, const Bindings& bindings);

/// A kernel that is one function of the memory; the function holds all that was worked out before.
template <class Run>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(const Task& task, std::string name, Run run, std::size_t scratch,
                 std::size_t weights)
      : task_(task),
        name_(std::move(name)),
        run_(std::move(run)),
        scratch_(scratch),
        weights_(weights) {}

  std::string name() const override { return "own " + name_; }
  std::size_t scratch_bytes() const override { return scratch_; }
  std::size_t weight_bytes() const override { return weights_; }
  void bind(const Bindings& bindings) override { memory_ = memory_of(task_, bindings); }

  Status run() override {
    if constexpr (std::is_void_v<std::invoke_result_t<Run&, const Memory&>>) {
      run_(memory_);
      return {};
    } else {
      return run_(memory_);
    }
  }

 private:
  Task task_;  // keeps the constants alive
  std::string name_;
  Run run_;
  std::size_t scratch_;
  std::size_t weights_;
  Memory memory_;
};

/// `scratch` and `weights` are the bytes that the function needs while it runs and that it holds.
template <class Run>
KernelPtr function_kernel(const Task& task, std::string name, Run run, std::size_t scratch = 0,
                          std::size_t weights = 0) {
  return std::make_unique<FunctionKernel<Run>>(task, std::move(name), std::move(run), scratch,
                                               weights);
}

// --- Questions that factories ask.

bool has_input(const Task& task, std::size_t i);

/// f32 that stands for itself.
bool is_real(const Operand& operand);

/// i8 or u8 with one scale for the whole tensor.
bool is_quantized(const Operand& operand);

/// Whether all present inputs and outputs are.
bool all_real(const Task& task);

/// The values of a constant of type int32 or int64.
std::optional<Ints> constant_ints(const Operand& operand);

/// An axis counted from either end, as an index; nothing if there is no such dimension.
std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

/// The distance in elements of neighbours along each axis.
Ints strides_of(const Shape& shape);

/// Element k of run (i, j) along an axis is at (i * extent + k) * inner + j.
struct Along {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};
Along along(const Shape& shape, std::size_t axis);

/// Bytes rounded up, so that what follows in scratch memory is aligned.
std::size_t aligned(std::size_t bytes);
inline std::size_t bytes_of_floats(std::int64_t count) {
  return aligned(static_cast<std::size_t>(count) * sizeof(float));
}

/// Elements of a loop that are worth a thread, if each costs as many steps.
std::int64_t grain_of(std::int64_t cost);

/// The kernel with an activation of its first output behind it. Nothing if there is no kernel, or
/// if the output does not hold floats.
KernelPtr activated(KernelPtr kernel, const graph::Activation& activation, const Operand& output);

// --- Kernels by file. Each gives nothing for a task that it does not cover.

KernelPtr make_move(const Task& task);
/// A shuffle with several inputs joins them, with several outputs it is cut into them.
KernelPtr make_joined_shuffle(const Task& task, const graph::ChannelShuffle& op);
KernelPtr make_pad(const Task& task, const graph::Pad& op);
KernelPtr make_space_to_batch(const Task& task);
KernelPtr make_batch_to_space(const Task& task);
KernelPtr make_gather(const Task& task, const graph::Gather& op);

// These apply the node's activation themselves.
KernelPtr make_elementwise(const Task& task, const graph::Elementwise& op);
KernelPtr make_activate(const Task& task, const graph::Activate& op);
KernelPtr make_unary(const Task& task, const graph::Unary& op);

KernelPtr make_where(const Task& task);
KernelPtr make_prelu(const Task& task);
KernelPtr make_cast(const Task& task);
KernelPtr make_softmax(const Task& task, const graph::Softmax& op);
KernelPtr make_layer_norm(const Task& task, const graph::LayerNorm& op);
KernelPtr make_instance_norm(const Task& task, const graph::InstanceNorm& op);
KernelPtr make_batch_norm(const Task& task, const graph::BatchNorm& op);
KernelPtr make_lp_normalization(const Task& task, const graph::LpNormalization& op);
KernelPtr make_lrn(const Task& task, const graph::Lrn& op);
KernelPtr make_reduce(const Task& task, const graph::Reduce& op);
KernelPtr make_global_pool(const Task& task, const graph::GlobalPool& op);
KernelPtr make_arg_extreme(const Task& task, const graph::ArgExtreme& op);
KernelPtr make_top_k(const Task& task, const graph::TopK& op);
KernelPtr make_pool(const Task& task, const graph::Pool& op);
KernelPtr make_gemm(const Task& task, const graph::Gemm& op);
KernelPtr make_matmul(const Task& task, const graph::MatMul& op);
KernelPtr make_attention(const Task& task, const graph::MultiHeadAttention& op);
/// With the addition of the last input, if the task says so.
KernelPtr make_convolution(const Task& task, const graph::Conv& op);
KernelPtr make_transposed_convolution(const Task& task, const graph::ConvTranspose& op);
/// Copies stored numbers, whatever they mean.
KernelPtr make_nearest_resize(const Task& task, const graph::Resize& op);
KernelPtr make_smooth_resize(const Task& task, const graph::Resize& op);

}  // namespace fleetfit::engine::own
