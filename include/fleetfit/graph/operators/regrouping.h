#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"

namespace fleetfit::graph {

struct DepthToSpace {
  std::int64_t block = 1;
  bool column_row_depth = false;  ///< ONNX's CRD mode
  Layout layout = Layout::nchw;
};

struct SpaceToDepth {
  std::int64_t block = 1;
  Layout layout = Layout::nchw;
};

/// TFLite's SPACE_TO_BATCH_ND on NHWC. Inputs: x, block, pads (spatial x 2).
struct SpaceToBatch {};

/// TFLite's BATCH_TO_SPACE_ND on NHWC. Inputs: x, block, crops (spatial x 2).
struct BatchToSpace {};

/// Reads channels as groups x rest and swaps the two.
struct ChannelShuffle {
  std::int64_t groups = 1;
  Layout layout = Layout::nchw;
};

using RegroupingOperators =
    OperatorList<DepthToSpace, SpaceToDepth, SpaceToBatch, BatchToSpace, ChannelShuffle>;

}  // namespace fleetfit::graph
