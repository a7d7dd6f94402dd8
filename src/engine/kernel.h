#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"
#include "fleetfit/graph/operator_table.h"

namespace fleetfit::engine {

/// How the elements of a tensor lie in memory.
enum class Format : std::uint8_t {
  plain,    ///< row by row, as the shape says
  blocked,  ///< NCHW with channels in blocks of 16 that lie together (oneDNN's nChw16c)
};

/// What a kernel must know of a tensor before there is memory for it.
struct Operand {
  graph::DType dtype = graph::DType::f32;
  graph::Shape shape;
  Format format = Format::plain;
  std::optional<graph::Quantization> quantization = {};
  std::optional<graph::TensorData> constant = {};  ///< present if its value never changes
  bool present = true;                             ///< false for an optional input that is left out
};

/// Bytes that a tensor takes, padding of blocks included.
std::size_t storage_bytes(const Operand& operand);

/// One operator that is to be executed.
struct Task {
  graph::Node node;  ///< its inputs and outputs are those below, in the same order
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  bool adds_last_input = false;  ///< the last input is added to the result before the activation
  int threads = 1;
};

/// Whether the task is a channel shuffle that joins several inputs or is cut into several outputs.
bool is_joined_shuffle(const Task& task);

/// Where the tensors of a task lie, for a kernel that is about to run. Constant inputs are null.
struct Bindings {
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* scratch = nullptr;  ///< of scratch_bytes(), aligned to 64
};

/// Executes one task. Made for fixed shapes, bound to fixed memory once, run many times.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Library and implementation, for people who look for time.
  virtual std::string name() const = 0;

  virtual std::size_t scratch_bytes() const { return 0; }
  virtual std::size_t weight_bytes() const { return 0; }

  /// The input whose memory the first output must share, if any: the kernel adds to it in place.
  virtual std::optional<std::size_t> output_shares_input() const { return std::nullopt; }

  virtual void bind(const Bindings& bindings) = 0;
  virtual Status run() = 0;
};

using KernelPtr = std::unique_ptr<Kernel>;

/// Makes a kernel; gives nothing for a task that it does not cover.
using MakeKernel = KernelPtr (*)(const Task&);

/// A function of operators of one type as a function of tasks with such an operator.
template <class Op, KernelPtr (*make)(const Task&, const Op&)>
KernelPtr make_of(const Task& task) {
  return make(task, *std::get_if<Op>(&task.node.op));
}

/// The kernels that a library has for one type of operators.
struct KernelEntry {
  std::size_t type = 0;  ///< graph::kTypeOf
  MakeKernel make = nullptr;
};

template <class Op, KernelPtr (*make)(const Task&, const Op&)>
constexpr KernelEntry entry() {
  return {graph::kTypeOf<Op>, make_of<Op, make>};
}

/// Of a function that does not look at the operator.
template <class Op>
constexpr KernelEntry entry(MakeKernel make) {
  return {graph::kTypeOf<Op>, make};
}

// --- Questions that those who make kernels ask.

bool has_input(const Task& task, std::size_t i);

/// Whether no tensor of the task is in blocks or empty.
bool all_plain(const Task& task);

/// f32 that stands for itself.
bool is_real(const Operand& operand);

/// Whether all present inputs and outputs are.
bool all_real(const Task& task);

/// i8 or u8 with one scale for the whole tensor.
bool is_quantized(const Operand& operand);

/// The values of a constant of type int32 or int64.
std::optional<graph::Ints> constant_ints(const Operand& operand);

/// An axis counted from either end, as an index; nothing if there is no such dimension.
std::optional<std::size_t> resolve_axis(std::int64_t axis, std::size_t rank);

}  // namespace fleetfit::engine
