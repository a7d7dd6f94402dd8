#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/graph/evaluate.h"
#include "fleetfit/graph/quantize.h"

namespace fleetfit::engine {

struct CalibrationOptions {
  graph::RangeOptions ranges = {};
  graph::QuantizeOptions quantize = {};
  int threads = 1;
};

/// One set of inputs of the network after another; nothing when there are no more.
using Samples = std::function<Result<std::optional<std::vector<graph::Value>>>()>;

/// The float network quantized to 8 bits, with the ranges that its activations have on the samples.
/// Fails with `invalid_input` if there is no sample, if one does not fit the inputs, or as
/// prepare_for_quantization and quantize do; with `unsupported` if the engine cannot run it.
Result<graph::Graph> quantize_on(const graph::Graph& float_graph, const Samples& samples,
                                 const CalibrationOptions& options = {});

/// Samples for a network whose data nobody has: random inputs, reproducible. Good enough for its
/// speed, not for its accuracy.
Samples random_samples(const graph::Graph& graph, int count);

}  // namespace fleetfit::engine
