#pragma once

#include <cstdint>

#include "fleetfit/graph/operators/operator_list.h"

namespace fleetfit::graph {

/// alpha * A * B + beta * C. Inputs: A, B, [C]. An A of any other shape is read as rows of as many
/// elements as B takes; the result is a matrix, or keeps A's leading extents with `keep_leading`.
struct Gemm {
  float alpha = 1;
  float beta = 1;
  bool trans_a = false;
  bool trans_b = false;
  bool keep_leading = false;
};

/// Batched product with numpy's rules. `trans_*` swap the last two dimensions of an operand.
struct MatMul {
  bool trans_a = false;
  bool trans_b = false;
};

/// softmax(Q K^T / sqrt(d)) V with projections. Inputs: q, k, v (sequence x features, with or
/// without a batch before), then weights and bias of the q, k, v and output projections (features x
/// features; features).
struct MultiHeadAttention {
  std::int64_t heads = 1;
};

using MatrixOperators = OperatorList<Gemm, MatMul, MultiHeadAttention>;

}  // namespace fleetfit::graph
