#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

/// Inputs: x, weights, [bias].
struct Conv {
  Window window;
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
};

/// Inputs: x, weights, [bias].
struct ConvTranspose {
  Window window;
  std::int64_t groups = 1;
  Ints output_padding;  ///< one for each spatial dimension
  Ints output_shape;    ///< spatial extents that the pads are derived from; empty: pads as given
  Layout layout = Layout::nchw;
};

using ConvolutionOperators = OperatorList<Conv, ConvTranspose>;

}  // namespace fleetfit::graph
