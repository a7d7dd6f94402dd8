#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/graph/quantize.h"

namespace fleetfit::graph::quantization {

/// How uint8 numbers stand for the reals of a range.
struct ActivationScale {
  float scale = 1;
  std::uint8_t zero_point = 0;
};

/// For the range widened to hold 0, which gets a number of its own: padding stays exact.
ActivationScale activation_scale(const ValueRange& range);

std::vector<std::uint8_t> to_uint8(std::span<const float> values, const ActivationScale& scale);

/// Weights of a layer seen as outer x channels x inner.
struct ChannelView {
  std::size_t channels = 1;
  std::size_t inner = 1;

  std::size_t channel(std::size_t element) const { return element / inner % channels; }
};

/// Int8 weights with one scale for each channel, and the int32 bias that goes with them.
struct LayerScales {
  std::vector<float> weights;
  std::vector<float> bias;  ///< input scale times weight scale, one for each number of the bias
};

/// Weights reach 127 at their largest. Where they are so small against the bias that it would
/// not fit into 32 bits, their scale is larger. Bias number i belongs to channel i % channels.
LayerScales layer_scales(std::span<const float> weights, const ChannelView& view,
                         std::span<const float> bias, float input_scale);

std::vector<std::int8_t> to_int8(std::span<const float> weights, const ChannelView& view,
                                 std::span<const float> scales);
std::vector<std::int32_t> to_int32(std::span<const float> bias, std::span<const float> scales);

}  // namespace fleetfit::graph::quantization
