#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/graph.h"

/// Runs a graph on this CPU with the kernels of oneDNN and XNNPACK and our own.
namespace fleetfit::engine {

/// Where kernels come from. A library that lacks one is helped out by our own.
enum class Library : std::uint8_t {
  automatic,  ///< what is best on this CPU: oneDNN on x86-64, XNNPACK elsewhere
  onednn,
  xnnpack,
  reference,  ///< the plain interpreter: slow, the yardstick of the others
};

/// What was found fastest on this CPU, by a text that names the question (operator, shapes,
/// threads, type). Plain data that a store can keep.
using Choices = std::map<std::string, std::string>;

/// Where questions without an answer in `known` are answered from.
enum class Choosing : std::uint8_t {
  measured,  ///< candidates are timed while the program is prepared
  fixed,     ///< the same on every machine: for tests that must be reproducible
};

struct EngineOptions {
  int threads = 1;
  Library library = Library::automatic;
  Choosing choosing = Choosing::measured;
  Choices known = {};  ///< answers of earlier preparations on this CPU
};

/// An input or output of a program.
struct Port {
  std::string name;
  graph::DType dtype = graph::DType::f32;
  graph::Shape shape;
  std::optional<graph::Quantization> quantization = {};
};

/// What one step of a program is and how long it took.
struct StepTime {
  std::string name;    ///< nodes of the graph that it executes, joined by "+"
  std::string type;    ///< type of the first of them
  std::string kernel;  ///< what executes it, e.g. "onednn brgconv_1x1:avx512_core"
  double mean_ms = 0;
};

struct PreparedProgram;

/// A network made ready to run: kernels chosen, weights packed, all memory reserved. Running
/// allocates nothing of its own. Programs are independent of each other: several may run at the
/// same time, each belongs to one thread at a time.
class Program {
 public:
  /// Fails with `unsupported`, listing the operators that cannot be run, and with `invalid_input`
  /// where the graph is broken, a shape is open or empty, or a weight is not a number.
  static Result<Program> prepare(const graph::Graph& graph, const EngineOptions& options = {});

  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  std::span<const Port> inputs() const;
  std::span<const Port> outputs() const;

  /// Memory of an input, to be filled before `run`, and of an output, valid until the next `run`.
  /// A run leaves the inputs as they are.
  std::span<std::byte> input(std::size_t index);
  std::span<const std::byte> output(std::size_t index) const;

  /// Copies a value in. `invalid_input` if its type or shape is not the input's.
  Status set_input(std::size_t index, const graph::Value& value);
  /// Copies an output.
  graph::Value output_value(std::size_t index) const;

  /// Runs once. Fails only where values decide, e.g. an index out of range.
  Status run();

  /// Runs once and adds to the times of the steps.
  Status run_timed();
  /// Mean over the timed runs since the program was prepared or `reset_times` was called.
  std::vector<StepTime> step_times() const;
  void reset_times();

  std::size_t arena_bytes() const;   ///< activations and scratch memory
  std::size_t weight_bytes() const;  ///< packed weights

  /// Answers found while this program was prepared, without those known before.
  const Choices& new_choices() const;
  /// Of those known before, the ones that it needed. With these and the new ones as `known`, the
  /// network is prepared in the same way.
  const Choices& used_choices() const;

 private:
  explicit Program(std::unique_ptr<PreparedProgram> state);

  std::unique_ptr<PreparedProgram> state_;
};

/// Why the engine cannot run a node, or "" if it can: for lists of unsupported operators.
std::string why_not_runnable(const graph::Graph& graph, const graph::Node& node);

/// What the kernels depend on beside shapes: CPU model and instruction sets, libraries and their
/// versions. Choices of one identity are of no use to another.
std::string kernel_identity();

}  // namespace fleetfit::engine
