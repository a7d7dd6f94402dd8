#pragma once

#include <dnnl.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/aligned_memory.h"
#include "engine/kernel.h"
#include "fleetfit/graph/operators.h"

/// What the oneDNN kernels share.
namespace fleetfit::engine::onednn {

/// oneDNN's handle on this CPU: immutable, shared by all programs.
const dnnl::engine& cpu();

/// The library's name of an element type; nothing if it has none.
std::optional<dnnl::memory::data_type> data_type(graph::DType type);

/// A tensor as the library sees it: rows of elements, dimensions as they stand.
dnnl::memory::desc plain_desc(const Operand& operand);

/// An image tensor (rank 3 to 5) with its dimensions in the order batch, channels, spatial.
dnnl::memory::desc image_desc(const Operand& operand, graph::Layout layout);

/// Appends an activation. False if the library does not have it. Values may be counted in units
/// other than 1 where `scales_along`.
bool append_activation(dnnl::post_ops& post_ops, const graph::Activation& activation,
                       float unit = 1);

/// Whether an activation of values in another unit is the same activation with other parameters.
bool scales_along(const graph::Activation& activation);

/// A weight as the library wants it, packed once.
class PackedWeight {
 public:
  /// `values` lies as `from` says.
  PackedWeight(const void* values, const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  const dnnl::memory& memory() const { return memory_; }
  std::size_t bytes() const { return bytes_.size(); }

 private:
  AlignedMemory bytes_;
  dnnl::memory memory_;
};

/// Which input of the task goes to which argument of the primitive.
struct Argument {
  int id = 0;
  std::size_t input = 0;
  dnnl::memory::desc desc;
};

/// A primitive with its arguments, which is what every oneDNN kernel is in the end. It makes the
/// first output of the task.
class PrimitiveKernel final : public Kernel {
 public:
  struct Parts {
    dnnl::primitive primitive;
    std::string implementation;
    dnnl::memory::desc scratchpad;
    std::vector<Argument> inputs;
    dnnl::memory::desc result;
    std::vector<std::pair<int, PackedWeight>> weights;
    std::optional<std::size_t> shares_input;
  };

  explicit PrimitiveKernel(Parts parts);

  std::string name() const override { return "onednn " + parts_.implementation; }
  std::size_t scratch_bytes() const override { return parts_.scratchpad.get_size(); }
  std::size_t weight_bytes() const override;
  std::optional<std::size_t> output_shares_input() const override { return parts_.shares_input; }
  void bind(const Bindings& bindings) override;
  Status run() override;

 private:
  Parts parts_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Attributes that every primitive gets: scratch memory from the arena, these post-ops.
dnnl::primitive_attr attributes(const dnnl::post_ops& post_ops = {});

/// Whether the library fell back to code that is there to be read, not to be run.
bool is_slow(const std::string& implementation);

/// Puts a kernel together from what the library chose; nothing if that is slow.
template <class Description>
KernelPtr primitive_kernel(const Description& chosen, dnnl::primitive primitive,
                           std::vector<Argument> inputs, dnnl::memory::desc result,
                           std::vector<std::pair<int, PackedWeight>> weights = {},
                           std::optional<std::size_t> shares_input = std::nullopt) {
  const std::string implementation = chosen.impl_info_str();
  if (is_slow(implementation)) return nullptr;
  return std::make_unique<PrimitiveKernel>(PrimitiveKernel::Parts{
      std::move(primitive), implementation, chosen.scratchpad_desc(), std::move(inputs),
      std::move(result), std::move(weights), shares_input});
}

// Convolutions can be done in more than one way.
bool takes_winograd(const Task& task);
bool can_convolve(const Task& task);
/// Nothing for a task that is no convolution, or that the library cannot do.
KernelPtr make_convolution(const Task& task, dnnl::algorithm algorithm);

KernelPtr make_quantized_gemm(const Task& task, const graph::Gemm& gemm);

/// For all other operators.
std::span<const KernelEntry> plain_kernels();

}  // namespace fleetfit::engine::onednn
