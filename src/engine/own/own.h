#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/kernel.h"
#include "engine/own/rows.h"
#include "engine/threads.h"
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

/// The distance in elements of neighbours along each axis.
Ints strides_of(const Shape& shape);

/// Element k of run (i, j) along an axis is at (i * extent + k) * inner + j.
struct Along {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};
Along along(const Shape& shape, std::size_t axis);

/// Calls `visit` with a zero of a whole number of 1, 2, 4 or 8 bytes, as which elements of any type
/// can be copied.
template <class Visit>
auto with_word(std::size_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    default:
      return visit(std::uint64_t{});
  }
}

/// Bytes rounded up, so that what follows in scratch memory is aligned.
std::size_t aligned(std::size_t bytes);
inline std::size_t bytes_of_floats(std::int64_t count) {
  return aligned(static_cast<std::size_t>(count) * sizeof(float));
}

/// Waking a thread takes some microseconds, in which it could take this many steps.
inline constexpr std::int64_t kWorthAThread = 16384;

/// Elements of a loop that are worth a thread, if each costs as many steps.
std::int64_t grain_of(std::int64_t cost);

/// Calls `body(i)` for each of them, on all threads; each costs as many steps.
template <class Body>
void parallel_each(std::int64_t count, std::int64_t cost, const Body& body) {
  parallel(count, grain_of(cost), [&body](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

/// A kernel that calls `row(memory, first, count)` for neighbours among as many elements; each
/// costs as many steps.
template <class Row>
KernelPtr kernel_by_rows(const Task& task, const char* name, std::int64_t count, std::int64_t cost,
                         Row row) {
  return function_kernel(task, name, [=](const Memory& memory) {
    parallel(count, grain_of(cost),
             [&](std::int64_t begin, std::int64_t end) { row(memory, begin, end - begin); });
  });
}

/// What the stored numbers of a quantized operand mean.
Scale scale_of(const Operand& operand);

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

bool touches_quantized(const Task& task);

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

// Each of these gives nothing for a task that it does not cover.

KernelPtr make_quantized_elementwise(const Task& task, const graph::Elementwise& op);
/// Functions of one element: a table of what each stored number becomes.
KernelPtr make_quantized_table(const Task& task);
KernelPtr make_quantized_concat(const Task& task, const graph::Concat& op);
/// Anything else: brings operands to floats, runs a kernel of floats, and rounds what it gives.
KernelPtr make_on_reals(const Task& task, MakeKernel make);

/// A shuffle with several inputs joins them, with several outputs it is cut into them.
KernelPtr make_joined_shuffle(const Task& task, const graph::ChannelShuffle& op);

// What each file has kernels for.
std::span<const OwnKernels> convolution_kernels();
std::span<const OwnKernels> dense_kernels();
std::span<const OwnKernels> elementwise_kernels();
std::span<const OwnKernels> movement_kernels();
std::span<const OwnKernels> normalization_kernels();
std::span<const OwnKernels> padding_kernels();
std::span<const OwnKernels> pooling_kernels();
std::span<const OwnKernels> quantized_kernels();
std::span<const OwnKernels> reduction_kernels();
std::span<const OwnKernels> resize_kernels();

}  // namespace fleetfit::engine::own
