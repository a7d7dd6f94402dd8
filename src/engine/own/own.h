#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/kernel_entry.h"
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

// --- Kernels.

/// Our kernels for one type of operators.
struct OwnKernels {
  std::size_t type = 0;         ///< graph::kTypeOf
  MakeKernel plain = nullptr;   ///< on tensors that stand for themselves
  MakeKernel stored = nullptr;  ///< a fast way for quantized tensors
  bool activates = false;       ///< they apply the node's activation themselves
  bool adds = false;            ///< they may add the last input
  /// `plain` does tasks of all kinds: operands say how numbers are stored, whatever else is known
  /// of the tensors.
  bool takes_all = false;
  bool on_reals = true;  ///< quantized tensors may be brought to floats for `plain`, and back
};

template <class Op, KernelPtr (*make)(const Task&, const Op&)>
constexpr OwnKernels kernels(OwnKernels further = {}) {
  further.type = graph::kTypeOf<Op>;
  further.plain = make_of<Op, make>;
  return further;
}

/// Whether results may be copies of stored numbers: all of them mean the same.
bool keeps_stored(const Task& task);

/// What copies stored numbers, whatever they mean, if all of them mean the same.
template <class Op, KernelPtr (*make)(const Task&, const Op&)>
KernelPtr make_movement(const Task& task) {
  const bool fits = !task.inputs.empty() && task.inputs[0].present && keeps_stored(task);
  return fits ? make_of<Op, make>(task) : nullptr;
}
template <class Op, KernelPtr (*make)(const Task&, const Op&)>
constexpr OwnKernels movement() {
  constexpr MakeKernel kMake = make_movement<Op, make>;
  return {.type = graph::kTypeOf<Op>, .plain = kMake, .stored = kMake};
}

/// A shuffle with several inputs joins them, with several outputs it is cut into them.
KernelPtr make_joined_shuffle(const Task& task, const graph::ChannelShuffle& op);

// What each file has kernels for.
std::span<const OwnKernels> convolution_kernels();
std::span<const OwnKernels> dense_kernels();
std::span<const OwnKernels> elementwise_kernels();
std::span<const OwnKernels> gather_kernels();
std::span<const OwnKernels> movement_kernels();
std::span<const OwnKernels> normalization_kernels();
std::span<const OwnKernels> padding_kernels();
std::span<const OwnKernels> pooling_kernels();
std::span<const OwnKernels> quantized_kernels();
std::span<const OwnKernels> reduction_kernels();
std::span<const OwnKernels> resize_kernels();
std::span<const OwnKernels> unary_kernels();

}  // namespace fleetfit::engine::own
