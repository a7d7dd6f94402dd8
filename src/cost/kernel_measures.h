#pragma once

#include <optional>
#include <vector>

#include "fleetfit/cost/cost.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/graph/links.h"

namespace fleetfit::cost {

/// Extents of a tensor as those of an image; what has no height and width has 1 of them.
struct ImageExtents {
  double batch = 1;
  double height = 1;
  double width = 1;
  double channels = 1;
};

/// A window that slides, or what a reduction reduces.
struct WindowExtents {
  double height = 1;
  double width = 1;
  double stride = 1;
  double dilation = 1;
};

/// All that features are made of. Sizes are counts of elements.
struct KernelMeasures {
  double flops = 0;  ///< of the node that does the work; single operations where it multiplies none
  double input_size = 0;
  double output_size = 0;
  double weight_size = 0;
  double input_bytes = 0;
  double output_bytes = 0;
  double weight_bytes = 0;
  double element_bytes = 0;           ///< of the output's elements
  double fused_size = 0;              ///< results of what is fused, one after the other
  double fused_operand_bytes = 0;     ///< read by what is fused
  double cheap_activation_size = 0;   ///< elements that go through a ReLU or the like
  double costly_activation_size = 0;  ///< elements that go through an exponential or the like
  double operands = 0;                ///< activations that are read
  double results = 0;                 ///< activations that are written
  bool averages = false;              ///< a pooling by means, not by maxima
  bool shifted = false;               ///< its largest input is quantized, and 0 is not stored as 0
  bool outside_blocks = false;        ///< as in Kernel
  double reordered_size = 0;          ///< as in Kernel
  double groups = 1;
  double depth = 0;  ///< products that are summed up for an element of the output
  ImageExtents in;
  ImageExtents out;
  WindowExtents window;
};

/// Measures kernels of one graph, which has to outlive it.
class KernelMeter {
 public:
  static Result<KernelMeter> of(const graph::Graph& graph);

  /// Fails with `invalid_input`, naming the node, on a shape that is not known and on a node that
  /// does not exist.
  Result<KernelMeasures> measure(const Kernel& kernel) const;

 private:
  KernelMeter(const graph::Graph& graph, graph::Layout layout,
              std::vector<std::optional<NodeCost>> costs)
      : links_(graph), layout_(layout), costs_(std::move(costs)) {}

  graph::Links links_;
  graph::Layout layout_;
  std::vector<std::optional<NodeCost>> costs_;

  friend class KernelMeasurement;
};

}  // namespace fleetfit::cost
