#include "graph/quantize/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fleetfit::graph::quantization {
namespace {

constexpr double kSmallest = std::numeric_limits<float>::min();
constexpr double kMostBias = 1 << 30;

/// To the nearest, ties to even, as runtimes do it: they divide floats.
float rounded(float value, float scale) { return std::nearbyint(value / scale); }

}  // namespace

ActivationScale activation_scale(const ValueRange& range) {
  const double low = std::min(static_cast<double>(range.low), 0.0);
  const double high = std::max(static_cast<double>(range.high), 0.0);
  if (low == high) return {};
  const auto scale = static_cast<float>(std::max((high - low) / 255, kSmallest));
  const double zero = std::nearbyint(-low / static_cast<double>(scale));
  return {scale, static_cast<std::uint8_t>(std::clamp(zero, 0.0, 255.0))};
}

std::vector<std::uint8_t> to_uint8(std::span<const float> values, const ActivationScale& scale) {
  std::vector<std::uint8_t> stored;
  stored.reserve(values.size());
  for (const float value : values) {
    const float number = rounded(value, scale.scale) + static_cast<float>(scale.zero_point);
    stored.push_back(static_cast<std::uint8_t>(std::clamp(number, 0.0F, 255.0F)));
  }
  return stored;
}

LayerScales layer_scales(std::span<const float> weights, const ChannelView& view,
                         std::span<const float> bias, float input_scale) {
  if (view.channels == 0) return {};
  std::vector<double> largest(view.channels, 0);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto& most = largest[view.channel(i)];
    most = std::max(most, std::abs(static_cast<double>(weights[i])));
  }
  std::vector<double> largest_bias(view.channels, 0);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    auto& most = largest_bias[i % view.channels];
    most = std::max(most, std::abs(static_cast<double>(bias[i])));
  }
  const double input = input_scale;
  LayerScales scales;
  for (std::size_t c = 0; c < view.channels; ++c) {
    const bool nothing = largest[c] == 0 && largest_bias[c] == 0;
    // Also the product with the input's scale is to be a normal number.
    const double scale = std::max({largest[c] / 127, largest_bias[c] / (input * kMostBias),
                                   kSmallest / std::min(input, 1.0)});
    scales.weights.push_back(nothing ? 1.0F : static_cast<float>(scale));
  }
  for (std::size_t i = 0; i < bias.size(); ++i)
    scales.bias.push_back(input_scale * scales.weights[i % view.channels]);
  return scales;
}

std::vector<std::int8_t> to_int8(std::span<const float> weights, const ChannelView& view,
                                 std::span<const float> scales) {
  std::vector<std::int8_t> stored;
  stored.reserve(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float number = rounded(weights[i], scales[view.channel(i)]);
    stored.push_back(static_cast<std::int8_t>(std::clamp(number, -127.0F, 127.0F)));
  }
  return stored;
}

std::vector<std::int32_t> to_int32(std::span<const float> bias, std::span<const float> scales) {
  std::vector<std::int32_t> stored;
  stored.reserve(bias.size());
  for (std::size_t i = 0; i < bias.size(); ++i) {
    const double scale = scales[i];
    stored.push_back(static_cast<std::int32_t>(std::nearbyint(bias[i] / scale)));
  }
  return stored;
}

}  // namespace fleetfit::graph::quantization
