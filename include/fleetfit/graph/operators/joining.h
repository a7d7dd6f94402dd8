#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"

namespace fleetfit::graph {

struct Concat {
  std::int64_t axis = 0;
};

/// Inputs: x, [sizes]. Without sizes: equal parts, one for each output.
struct Split {
  std::int64_t axis = 0;
};

/// Joins tensors along a new axis (TFLite's PACK).
struct Stack {
  std::int64_t axis = 0;
};

/// One output for each index of the axis, which is dropped (TFLite's UNPACK).
struct Unstack {
  std::int64_t axis = 0;
};

using JoiningOperators = OperatorList<Concat, Split, Stack, Unstack>;

}  // namespace fleetfit::graph
