#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

/// Inputs: x, scale, shift, mean, variance.
struct BatchNorm {
  float epsilon = 1e-5F;
  Layout layout = Layout::nchw;
};

/// Inputs: x, scale, shift (one per channel).
struct InstanceNorm {
  float epsilon = 1e-5F;
};

/// Normalizes over the dimensions from `axis` on. Inputs: x, scale, [shift].
struct LayerNorm {
  std::int64_t axis = -1;
  float epsilon = 1e-5F;
};

/// Local response normalization across channels.
struct Lrn {
  std::int64_t size = 1;
  float alpha = 1e-4F;
  float beta = 0.75F;
  float bias = 1;
  Layout layout = Layout::nchw;
};

/// Divides by the p-norm along the axis; p is 1 or 2.
struct LpNormalization {
  std::int64_t axis = -1;
  std::int64_t p = 2;
};

struct Softmax {
  std::int64_t axis = -1;
  bool to_end = false;  ///< over all dimensions from `axis` on together (opsets before 13)
  bool log = false;
};

using NormalizationOperators =
    OperatorList<BatchNorm, InstanceNorm, LayerNorm, Lrn, LpNormalization, Softmax>;

}  // namespace fleetfit::graph
