#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

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

}  // namespace fleetfit::engine
