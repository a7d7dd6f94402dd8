#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "train/torch/operators.h"

/// What each operator computes, a function for each of them, and what these share.
namespace fleetfit::train::operators {

using Outputs = std::vector<at::Tensor>;
using Call = OperatorCall;
using graph::Ints;
using graph::Layout;

/// Ends the run: operands that a node cannot take.
template <class... Args>
[[noreturn]] void misfit(fmt::format_string<Args...> text, Args&&... args) {
  throw std::runtime_error(fmt::format(text, std::forward<Args>(args)...));
}

/// `count` numbers from `first` on.
Ints counting(std::int64_t count, std::int64_t first = 0);
/// Whole numbers as torch holds them, and back.
Ints ints_of(const at::Tensor& numbers);
at::Tensor tensor_of(const Ints& numbers);
/// Axes counted from the end become those counted from the beginning.
std::int64_t positive_axis(std::int64_t axis, std::int64_t rank);
Ints positive_axes(Ints axes, std::int64_t rank);
/// Between the layout of the graph and torch's own.
at::Tensor to_channels_first(const at::Tensor& x, Layout layout);
at::Tensor from_channels_first(const at::Tensor& x, Layout layout);
/// The extents behind batch and channels.
Ints spatial_of(const at::Tensor& x);
/// Adds to the spatial dimensions; torch wants the last one first.
at::Tensor pad_spatial(const at::Tensor& x, const Ints& begin, const Ints& end, double value);
/// All on the device of the one that is not on the CPU, if there is one.
std::vector<at::Tensor> together(std::vector<at::Tensor> operands);

enum class Memory : std::uint8_t { keep, overwrite };

/// The function of each element, in the memory of `x` if it may be overwritten.
at::Tensor activated(at::Tensor x, const graph::Activation& activation, Memory memory);

// One for each operator that can be trained.
Outputs run(const graph::Activate& op, const Call& call);
Outputs run(const graph::PRelu& op, const Call& call);
Outputs run(const graph::Conv& op, const Call& call);
Outputs run(const graph::ConvTranspose& op, const Call& call);
Outputs run(const graph::Gemm& op, const Call& call);
Outputs run(const graph::MatMul& op, const Call& call);
Outputs run(const graph::MultiHeadAttention& op, const Call& call);
Outputs run(const graph::BatchNorm& op, const Call& call);
Outputs run(const graph::InstanceNorm& op, const Call& call);
Outputs run(const graph::LayerNorm& op, const Call& call);
Outputs run(const graph::Lrn& op, const Call& call);
Outputs run(const graph::LpNormalization& op, const Call& call);
Outputs run(const graph::Softmax& op, const Call& call);
Outputs run(const graph::Pool& op, const Call& call);
Outputs run(const graph::GlobalPool& op, const Call& call);
Outputs run(const graph::Unary& op, const Call& call);
Outputs run(const graph::Elementwise& op, const Call& call);
Outputs run(const graph::Where& op, const Call& call);
Outputs run(const graph::Cast& op, const Call& call);
Outputs run(const graph::Reduce& op, const Call& call);
Outputs run(const graph::Concat& op, const Call& call);
Outputs run(const graph::Split& op, const Call& call);
Outputs run(const graph::Slice& op, const Call& call);
Outputs run(const graph::Pad& op, const Call& call);
Outputs run(const graph::Resize& op, const Call& call);
Outputs run(const graph::Transpose& op, const Call& call);
Outputs run(const graph::Reshape& op, const Call& call);
Outputs run(const graph::Flatten& op, const Call& call);
Outputs run(const graph::Squeeze& op, const Call& call);
Outputs run(const graph::Unsqueeze& op, const Call& call);
Outputs run(const graph::Expand& op, const Call& call);
Outputs run(const graph::Tile& op, const Call& call);
Outputs run(const graph::Gather& op, const Call& call);
Outputs run(const graph::Stack& op, const Call& call);
Outputs run(const graph::Unstack& op, const Call& call);
Outputs run(const graph::DepthToSpace& op, const Call& call);
Outputs run(const graph::SpaceToDepth& op, const Call& call);
Outputs run(const graph::ChannelShuffle& op, const Call& call);
Outputs run(const graph::ConstantOfShape& op, const Call& call);
Outputs run(const graph::ShapeOf& op, const Call& call);
Outputs run(const graph::Range& op, const Call& call);
Outputs run(const graph::Identity& op, const Call& call);
Outputs run(const graph::Dropout& op, const Call& call);

}  // namespace fleetfit::train::operators
