#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/fuse.h"
#include "engine/kernel.h"
#include "fleetfit/engine/program.h"

namespace fleetfit::engine {

/// Where a tensor lies inside another one that is longer or has another shape.
struct Place {
  int tensor = 0;
  std::size_t offset = 0;
};

struct PlannedTensor {
  Operand operand;
  std::optional<Place> inside = {};  ///< absent: has memory of its own
  bool pinned = false;               ///< an input or output of the program: never overwritten
};

struct PlannedStep {
  Task task;
  std::vector<int> inputs;  ///< tensors; -1 for one that is left out
  std::vector<int> outputs;
  std::string name;  ///< of all nodes that it stands for
};

/// The place of a tensor among those of its plan.
inline std::size_t index(int tensor) { return static_cast<std::size_t>(tensor); }

/// A graph as steps over tensors with known formats, in order of execution.
struct Plan {
  std::vector<PlannedTensor> tensors;
  std::vector<PlannedStep> steps;
  std::vector<int> inputs;
  std::vector<int> outputs;
};

/// How images lie in a whole program.
enum class ImageLayout : std::uint8_t { channels_last, blocked };

/// Simplifies the graph as every plan of it needs it: constants folded, batch norms and activations
/// fused, quantization on the tensors.
Result<graph::Graph> simplify_for_engine(const graph::Graph& graph);

/// Lays the simplified graph out.
Result<Plan> make_plan(const graph::Graph& simplified, ImageLayout layout, Fusing fusing,
                       int threads);

/// Whether blocked images can help: there is a float convolution.
bool has_float_convolution(const graph::Graph& simplified);

}  // namespace fleetfit::engine
