#pragma once

#include <cstdint>
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

}  // namespace fleetfit::graph::quantization
