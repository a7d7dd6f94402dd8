#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/network_parts.h"
#include "train/torch/device.h"
#include "train/torch/optimizer.h"
#include "train/torch/parameters.h"

namespace fleetfit::train {

/// A size as torch counts.
inline std::int64_t whole(std::size_t count) { return static_cast<std::int64_t>(count); }

/// A dense layer that is trained, or a frozen one.
struct TorchLayer {
  at::Tensor weights;  ///< inputs x outputs
  at::Tensor bias;     ///< 1 x outputs

  at::Tensor operator()(const at::Tensor& values) const { return at::addmm(bias, values, weights); }
};

/// Random weights of this size (times what keeps the size of values) to be trained.
inline TorchLayer new_layer(std::size_t inputs, std::size_t outputs, double size,
                            core::Random random, Compute compute) {
  const double bound = size * std::sqrt(3.0 / static_cast<double>(inputs));
  std::vector<float> weights(inputs * outputs);
  for (float& weight : weights) weight = static_cast<float>(random.uniform(-bound, bound));
  const auto device = device_of(compute);
  const auto rows = static_cast<std::int64_t>(inputs);
  const auto columns = static_cast<std::int64_t>(outputs);
  TorchLayer layer{.weights = tensor_of(weights, rows, columns).to(device),
                   .bias = tensor_of(std::vector<float>(outputs), 1, columns).to(device)};
  layer.weights.set_requires_grad(true);
  layer.bias.set_requires_grad(true);
  return layer;
}

inline TorchLayer frozen_layer(const predict::DenseLayer& layer, Compute compute) {
  const auto device = device_of(compute);
  const auto outputs = static_cast<std::int64_t>(layer.outputs);
  return {.weights =
              tensor_of(layer.weights, static_cast<std::int64_t>(layer.inputs), outputs).to(device),
          .bias = tensor_of(layer.bias, 1, outputs).to(device)};
}

inline predict::DenseLayer numbers_of(const TorchLayer& layer) {
  return {.inputs = static_cast<std::size_t>(layer.weights.size(0)),
          .outputs = static_cast<std::size_t>(layer.weights.size(1)),
          .weights = numbers_of(layer.weights.detach().to(at::kCPU)),
          .bias = numbers_of(layer.bias.detach().to(at::kCPU))};
}

inline TorchOptimizer optimizer_of(const std::vector<TorchLayer>& layers, double decay) {
  std::vector<at::Tensor> parameters;
  std::vector<bool> decaying;
  for (const auto& layer : layers) {
    parameters.push_back(layer.weights);
    decaying.push_back(true);
    parameters.push_back(layer.bias);
    decaying.push_back(false);
  }
  return {std::move(parameters),
          std::move(decaying),
          {.kind = OptimizerKind::adam, .decay = decay, .max_norm = 5}};
}

/// Rises for a twentieth of the steps, then falls to 0 along a cosine.
inline double rate_at(double rate, std::size_t step, std::size_t steps) {
  const double share = static_cast<double>(step) / static_cast<double>(steps);
  constexpr double kRise = 0.05;
  if (share < kRise) return rate * (share / kRise + 0.02);
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * (share - kRise) / (1 - kRise)));
}

}  // namespace fleetfit::train
