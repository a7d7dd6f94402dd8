#pragma once

#include "graph/evaluate/kernels.h"

/// Reference computations that fill a file of their own; the others stand in their operators'
/// files.
namespace fleetfit::graph::interpreter {

Values run_conv(const Conv& op, const Call& call);
Values run_conv_transpose(const ConvTranspose& op, const Call& call);
Values run_gemm(const Gemm& op, const Call& call);
Values run_matmul(const MatMul& op, const Call& call);
Values run_attention(const MultiHeadAttention& op, const Call& call);
Values run_unary(const Unary& op, const Call& call);
Values run_elementwise(const Elementwise& op, const Call& call);
Values run_reduce(const Reduce& op, const Call& call);
Values run_arg_extreme(const ArgExtreme& op, const Call& call);
Values run_top_k(const TopK& op, const Call& call);

}  // namespace fleetfit::graph::interpreter
