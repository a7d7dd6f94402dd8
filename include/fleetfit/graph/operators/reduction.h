#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"
#include "fleetfit/graph/operators/window.h"
#include "fleetfit/graph/tensor_data.h"

namespace fleetfit::graph {

enum class ReduceKind : std::uint8_t {
  mean,
  sum,
  max,
  min,
  prod,
  l1,
  l2,
  sum_square,
  log_sum,
  log_sum_exp
};

/// No axes: over all dimensions.
struct Reduce {
  ReduceKind kind = ReduceKind::mean;
  Ints axes;
  bool keep_dims = true;
};

struct ArgExtreme {
  bool smallest = false;  ///< ArgMin, else ArgMax
  std::int64_t axis = 0;
  bool keep_dims = true;
  bool select_last = false;
  DType index_type = DType::i64;
};

/// Inputs: x, k. Outputs: values, indices.
struct TopK {
  std::int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
};

using ReductionOperators = OperatorList<Reduce, ArgExtreme, TopK>;

}  // namespace fleetfit::graph
