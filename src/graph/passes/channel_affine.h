#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "graph/passes/rewriter.h"

namespace fleetfit::graph::rewrite {

/// y = scale[c] * x + shift[c] for each channel c.
struct ChannelAffine {
  std::vector<double> scale;
  std::vector<double> shift;
};

/// Channels that a layer with constant float weights makes, and their dimension in its output.
struct LayerChannels {
  std::int64_t count = 0;
  std::size_t axis = 0;
};

/// The channels of a Conv, ConvTranspose, Gemm or BatchNorm that can take a ChannelAffine in: one
/// with constant float weights, without activation or quantization, with an output of known shape.
std::optional<LayerChannels> absorbing_channels(const Graph& graph, const Node& node);

/// The constants of a BatchNorm, one number for each channel.
struct BatchNormConstants {
  TensorData scale;
  TensorData shift;
  TensorData mean;
  TensorData variance;
  double epsilon = 0;

  /// What it does to each channel.
  ChannelAffine affine() const;
};

/// Nothing if its parameters are not constants.
std::optional<BatchNormConstants> constants_of_batch_norm(const Graph& graph, const Node& node);

/// Changes the node's weights so that it makes what `affine` makes of its result. The node is one
/// that absorbing_channels() accepts; `affine` has one entry for each channel.
void absorb(Rewriter& rewriter, int index, const ChannelAffine& affine);

}  // namespace fleetfit::graph::rewrite
