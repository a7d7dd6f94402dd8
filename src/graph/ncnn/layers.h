#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>

#include "fleetfit/graph/operators.h"
#include "graph/ncnn/conversion.h"

namespace fleetfit::graph::ncnn {

/// A type of layer and what writes it into the graph. Parameters have the numbers and defaults of
/// ncnn's table of operators.
struct LayerType {
  std::string_view name;
  void (*convert)(Conversion& c);
};

// Each group is one file.
std::span<const LayerType> convolution_layers();
std::span<const LayerType> matrix_layers();
std::span<const LayerType> normalization_layers();
std::span<const LayerType> activation_layers();
std::span<const LayerType> arithmetic_layers();
std::span<const LayerType> image_layers();
std::span<const LayerType> moving_layers();
std::span<const LayerType> source_layers();

/// The channels that the first convolution after each input wants, by the input's blob.
std::map<std::string_view, std::int64_t> channels_of_inputs(std::span<const Layer> layers);

/// Makes an Input layer an input of the graph. Extents that the file does not say are those of an
/// image: channels as the first convolution wants them, "height" and "width" as the options say.
/// `wanted` is what channels_of_inputs() gave.
Status add_input(GraphWriter& writer, Layer& layer,
                 const std::map<std::string_view, std::int64_t>& wanted);

/// Applies the activation that convolutions and dense layers carry (parameters 9 and 10) and gives
/// the result: the node before does it, or nodes of their own where it cannot.
TensorId fused_activation(Conversion& c, TensorId x);

/// x * clamp(alpha * x + beta, 0, 1), which is the graph's own HardSwish only for 1/6 and 1/2.
TensorId hard_swish(Conversion& c, TensorId x, float alpha, float beta);

/// Two blobs brought to shapes that broadcast as ncnn does.
struct Pair {
  TensorId a = kNoTensor;
  TensorId b = kNoTensor;
};
Pair broadcast(Conversion& c, const Blob& a, const Blob& b);

/// The shape that makes one value for each index of the outermost dimension broadcast over a blob.
Shape per_channel(const Blob& blob, std::int64_t count);

/// Gives the result of an element-wise operator the form of its operands: one by one only if all
/// are.
void output_like(Conversion& c, TensorId y, const Blob& a);

}  // namespace fleetfit::graph::ncnn
