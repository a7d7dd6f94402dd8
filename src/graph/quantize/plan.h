#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/graph/quantize.h"
#include "graph/operators/traits.h"

namespace fleetfit::graph::quantization {

/// What is quantized in a network, and which tensors have their scale in common.
class Plan {
 public:
  /// `keep_float` has one entry for each node.
  Plan(const Graph& graph, const std::vector<bool>& keep_float);

  Role role(std::size_t node) const { return roles_[node]; }

  /// Tensors with the same group have the same scale.
  TensorId group(TensorId id) const;
  bool is_quantized(TensorId id) const;

  /// Tensors that are neither constants nor made by moving others, in quantized groups.
  const std::vector<TensorId>& sources() const { return sources_; }

  /// Constants in quantized groups.
  const std::vector<TensorId>& constants() const { return constants_; }

 private:
  void join(TensorId a, TensorId b);

  std::vector<Role> roles_;
  std::vector<TensorId> parent_;
  std::vector<bool> quantized_;  // of the group that the tensor stands for
  std::vector<TensorId> sources_;
  std::vector<TensorId> constants_;
};

/// Positions of the inputs of a node that hold activations, not weights, shapes and the like.
std::vector<std::size_t> data_inputs(const Graph& graph, const Node& node);

/// The role of a layer, by what is known of its weights and bias.
Role role_of_layer(const Operator& op, const Graph& graph, const Node& node);

/// Whether the layer's weights are a constant that is quantized for itself.
bool has_weights(const Graph& graph, const Node& node);

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
