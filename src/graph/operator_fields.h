#pragma once

#include <tuple>

#include "fleetfit/graph/operators.h"

/// The attributes of each operator, in order, for who treats them alike. A field that is added to
/// an operator and not here does not compile. Operators without attributes have none here.
namespace fleetfit::graph {

inline auto fields(const Activation& op) {
  const auto& [kind, alpha, beta] = op;
  return std::tie(kind, alpha, beta);
}
inline auto fields(const Window& op) {
  const auto& [kernel, strides, dilations, pads_begin, pads_end, auto_pad, ceil_mode] = op;
  return std::tie(kernel, strides, dilations, pads_begin, pads_end, auto_pad, ceil_mode);
}
inline auto fields(const Conv& op) {
  const auto& [window, groups, layout] = op;
  return std::tie(window, groups, layout);
}
inline auto fields(const ConvTranspose& op) {
  const auto& [window, groups, output_padding, output_shape, layout] = op;
  return std::tie(window, groups, output_padding, output_shape, layout);
}
inline auto fields(const Gemm& op) {
  const auto& [alpha, beta, trans_a, trans_b, keep_leading] = op;
  return std::tie(alpha, beta, trans_a, trans_b, keep_leading);
}
inline auto fields(const MatMul& op) {
  const auto& [trans_a, trans_b] = op;
  return std::tie(trans_a, trans_b);
}
inline auto fields(const MultiHeadAttention& op) {
  const auto& [heads] = op;
  return std::tie(heads);
}
inline auto fields(const BatchNorm& op) {
  const auto& [epsilon, layout] = op;
  return std::tie(epsilon, layout);
}
inline auto fields(const InstanceNorm& op) {
  const auto& [epsilon] = op;
  return std::tie(epsilon);
}
inline auto fields(const LayerNorm& op) {
  const auto& [axis, epsilon] = op;
  return std::tie(axis, epsilon);
}
inline auto fields(const Pool& op) {
  const auto& [kind, window, count_include_pad, layout] = op;
  return std::tie(kind, window, count_include_pad, layout);
}
inline auto fields(const GlobalPool& op) {
  const auto& [kind, layout] = op;
  return std::tie(kind, layout);
}
inline auto fields(const Lrn& op) {
  const auto& [size, alpha, beta, bias, layout] = op;
  return std::tie(size, alpha, beta, bias, layout);
}
inline auto fields(const LpNormalization& op) {
  const auto& [axis, p] = op;
  return std::tie(axis, p);
}
inline auto fields(const Softmax& op) {
  const auto& [axis, to_end, log] = op;
  return std::tie(axis, to_end, log);
}
inline auto fields(const Activate& op) {
  const auto& [function] = op;
  return std::tie(function);
}
inline auto fields(const Unary& op) {
  const auto& [kind] = op;
  return std::tie(kind);
}
inline auto fields(const Elementwise& op) {
  const auto& [kind] = op;
  return std::tie(kind);
}
inline auto fields(const Cast& op) {
  const auto& [to] = op;
  return std::tie(to);
}
inline auto fields(const QuantizeLinear& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const DequantizeLinear& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const Requantize& op) {
  const auto& [to] = op;
  return std::tie(to);
}
inline auto fields(const Concat& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const Split& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const Slice& op) {
  const auto& [squeezed] = op;
  return std::tie(squeezed);
}
inline auto fields(const Pad& op) {
  const auto& [mode] = op;
  return std::tie(mode);
}
inline auto fields(const Resize& op) {
  const auto& [mode, coordinates, nearest, cubic_coefficient] = op;
  return std::tie(mode, coordinates, nearest, cubic_coefficient);
}
inline auto fields(const Transpose& op) {
  const auto& [perm] = op;
  return std::tie(perm);
}
inline auto fields(const Reshape& op) {
  const auto& [allow_zero] = op;
  return std::tie(allow_zero);
}
inline auto fields(const Flatten& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const Gather& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const Stack& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const Unstack& op) {
  const auto& [axis] = op;
  return std::tie(axis);
}
inline auto fields(const DepthToSpace& op) {
  const auto& [block, column_row_depth, layout] = op;
  return std::tie(block, column_row_depth, layout);
}
inline auto fields(const SpaceToDepth& op) {
  const auto& [block, layout] = op;
  return std::tie(block, layout);
}
inline auto fields(const ChannelShuffle& op) {
  const auto& [groups, layout] = op;
  return std::tie(groups, layout);
}
inline auto fields(const Reduce& op) {
  const auto& [kind, axes, keep_dims] = op;
  return std::tie(kind, axes, keep_dims);
}
inline auto fields(const ArgExtreme& op) {
  const auto& [smallest, axis, keep_dims, select_last, index_type] = op;
  return std::tie(smallest, axis, keep_dims, select_last, index_type);
}
inline auto fields(const TopK& op) {
  const auto& [axis, largest, sorted] = op;
  return std::tie(axis, largest, sorted);
}
inline auto fields(const ConstantOfShape& op) {
  const auto& [dtype, value] = op;
  return std::tie(dtype, value);
}
inline auto fields(const ShapeOf& op) {
  const auto& [start, end, index_type] = op;
  return std::tie(start, end, index_type);
}
// Why it is not known depends on the reader, not on the file.
inline auto fields(const Unknown& op) { return std::tie(op.domain, op.type, op.attributes); }

}  // namespace fleetfit::graph
