#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/graph.h"

/// A float network made to compute with 8-bit whole numbers after its training:
///
///     prepare_for_quantization -> run it on some data, observing tensors_to_observe -> quantize
///
/// and to_quantized_tensors for callers that execute the result.
namespace fleetfit::graph {

/// Whether any of it computes with 8-bit numbers.
bool is_quantized(const Graph& graph);

/// The smallest and the largest value that a tensor is to be able to hold.
struct ValueRange {
  float low = 0;
  float high = 0;

  bool operator==(const ValueRange&) const = default;
};
using Ranges = std::map<TensorId, ValueRange>;

enum class RangeMethod : std::uint8_t {
  min_max,     ///< all that was seen
  percentile,  ///< without the rarest values on either side
};

struct RangeOptions {
  RangeMethod method = RangeMethod::min_max;
  double percentile = 99.99;  ///< share of the values kept; half of the rest is cut on either side
};

/// Finds the ranges of tensors from batches of their values. The result does not depend on the
/// order of the batches. Keeps a histogram of fixed size for each tensor, never the values.
class RangeCollector {
 public:
  explicit RangeCollector(const RangeOptions& options = {}) : options_(options) {}

  void observe(TensorId tensor, std::span<const float> values);

  /// Of every tensor of which a value was seen. One that held a NaN or an infinity gets a range of
  /// NaN, which quantize() refuses by the tensor's name.
  Ranges ranges() const;

 private:
  /// Bins of equal width from -reach to reach, a power of two.
  struct Histogram {
    double reach = 0;
    std::vector<std::uint64_t> bins;

    void grow(double magnitude);
    void add(float value);
  };

  struct Seen {
    ValueRange extremes;
    bool all_finite = true;
    std::uint64_t count = 0;
    Histogram histogram;
  };

  ValueRange common_values(const Seen& seen) const;

  RangeOptions options_;
  std::map<TensorId, Seen> seen_;
};

/// The network in the form that quantize() takes: simplified; layers keep ReLU and Clip, all other
/// activations are nodes of their own, so that what goes into them can be observed, SiLU as Sigmoid
/// and Mul; products with a bias are Gemms of matrices; batch norms that are left are depthwise
/// convolutions. Computes the same. Fails with `invalid_input` if the network is quantized already.
Result<Graph> prepare_for_quantization(Graph float_graph);

struct QuantizeOptions {
  bool per_channel = true;              ///< one scale for each output channel of weights
  std::vector<std::string> keep_float;  ///< names of nodes that go on computing with floats
  bool only_costs = false;  ///< nobody will run it: weights are zeros, made when asked for
};

/// The float activations of a prepared network whose ranges quantize() needs with these options, in
/// order of ids.
std::vector<TensorId> tensors_to_observe(const Graph& prepared,
                                         const QuantizeOptions& options = {});

/// Ranges for a network of which only the costs are asked for: their signs are right, so that zero
/// points are zero where they would be with data, after a ReLU; how far they reach is made up.
Ranges guessed_ranges(const Graph& prepared, const QuantizeOptions& options = {});

/// The network with QuantizeLinear and DequantizeLinear around all that integer kernels exist for,
/// in the form that ONNX Runtime expects. Inputs and outputs stay float.
///
///  - Activations: uint8, one scale, range widened to hold 0. Operators that only move values
///    (Concat, Reshape, MaxPool, Resize, …) have one scale for all that goes in and comes out.
///  - Weights: int8 from -127 to 127 around 0. Biases: int32, scale = input's times weights'.
///  - Softmax, layer norms and whatever else has no integer kernel computes with floats in between.
///
/// Fails with `invalid_input`, naming tensor or node, if a range is missing, not finite or
/// reversed, if weights are not finite (unless only costs are asked for), or if `keep_float` names
/// no node.
Result<Graph> quantize(Graph prepared, const Ranges& ranges, const QuantizeOptions& options = {});

struct QuantizedTensorOptions {
  /// Also lets convolutions and products apply a cheap activation that alone reads them
  /// (hard-swish, hard-sigmoid, …), and makes one node of an exponential one that is written as
  /// several (SiLU as Sigmoid and Mul): one rounding less, so results change by rounding.
  bool merge_activations = false;
};

/// Rewrites DequantizeLinear -> operator -> QuantizeLinear into the operator on quantized tensors
/// (Tensor::quantization), as TFLite has them; computes exactly the same. Layers take in ReLU and
/// Clip. What stays of DequantizeLinear and QuantizeLinear becomes Requantize where its parameters
/// are constants. Expects a simplified graph; leaves one that is not quantized as it is. A failure
/// may leave it half changed.
Status to_quantized_tensors(Graph& graph, const QuantizedTensorOptions& options = {});

/// The network as it runs in int8, of which only the costs are asked for: its ranges and weights
/// are made up, which changes results and not times. One that is quantized stays as it is.
Result<Graph> quantized_for_costs(Graph graph);

}  // namespace fleetfit::graph
