#include "train/torch/learned_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>

#include <cmath>
#include <numbers>

namespace fleetfit::train {

at::Tensor TorchDesignNetwork::operator()(const at::Tensor& designs) const {
  auto values = designs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) values = at::relu(values);
    values = layers[i](values);
  }
  return values.add(skip(designs));
}

TorchLayer new_layer(std::size_t inputs, std::size_t outputs, double size, core::Random random,
                     Compute compute) {
  const double bound = size * std::sqrt(3.0 / static_cast<double>(inputs));
  std::vector<float> weights(inputs * outputs);
  for (float& weight : weights) weight = static_cast<float>(random.uniform(-bound, bound));
  const auto device = device_of(compute);
  TorchLayer layer{.weights = tensor_of(weights, whole(inputs), whole(outputs)).to(device),
                   .bias = tensor_of(std::vector<float>(outputs), 1, whole(outputs)).to(device)};
  layer.weights.set_requires_grad(true);
  layer.bias.set_requires_grad(true);
  return layer;
}

TorchLayer frozen_layer(const predict::DenseLayer& layer, Compute compute) {
  const auto device = device_of(compute);
  const auto outputs = whole(layer.outputs);
  return {.weights = tensor_of(layer.weights, whole(layer.inputs), outputs).to(device),
          .bias = tensor_of(layer.bias, 1, outputs).to(device)};
}

predict::DenseLayer numbers_of(const TorchLayer& layer) {
  return {.inputs = static_cast<std::size_t>(layer.weights.size(0)),
          .outputs = static_cast<std::size_t>(layer.weights.size(1)),
          .weights = numbers_of(layer.weights.detach().to(at::kCPU)),
          .bias = numbers_of(layer.bias.detach().to(at::kCPU))};
}

TorchOptimizer optimizer_of(const std::vector<TorchLayer>& layers, double decay) {
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

double rate_at(double rate, std::size_t step, std::size_t steps) {
  const double share = static_cast<double>(step) / static_cast<double>(steps);
  constexpr double kRise = 0.05;
  if (share < kRise) return rate * (share / kRise + 0.02);
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * (share - kRise) / (1 - kRise)));
}

bool goes_on(std::size_t step, std::size_t steps, const FitProgress& progress) {
  constexpr std::size_t kReport = 50;
  if (step % kReport != kReport - 1 && step + 1 != steps) return true;
  return progress(static_cast<double>(step + 1) / static_cast<double>(steps));
}

TorchDecoder::TorchDecoder(const space::Space& space, std::size_t inputs,
                           const OptimizerFitOptions& options, const core::Random& random) {
  const std::size_t width = options.width;
  const auto compute = options.compute;
  const double relu = std::sqrt(2.0);
  context_.push_back(new_layer(inputs, width, relu, random.split("context 0"), compute));
  context_.push_back(new_layer(width, width, 1, random.split("context 1"), compute));
  hidden_ = new_layer(width, width, relu, random.split("hidden"), compute);
  for (std::size_t i = 0; i < space.genes().size(); ++i) {
    const std::size_t choices = space.genes()[i].choices.size();
    const auto own = random.split(i);
    Gene gene{.place = new_layer(1, width, 0.3, own.split("place"), compute),
              .choices = new_layer(choices, width, 1, own.split("choices"), compute),
              .out = new_layer(width, choices, 0.1, own.split("out"), compute)};
    const at::NoGradGuard no_gradients;
    gene.place.bias.copy_(gene.place.weights);
    gene.place.weights.zero_();
    gene.place.weights.set_requires_grad(false);
    gene.choices.bias.set_requires_grad(false);
    genes_.push_back(std::move(gene));
  }
}

at::Tensor TorchDecoder::context(const at::Tensor& inputs) const {
  return context_[1](at::relu(context_[0](inputs)));
}

at::Tensor TorchDecoder::logits(std::size_t gene, const at::Tensor& state) const {
  const auto& parts = genes_[gene];
  return parts.out(at::relu(hidden_(at::relu(state.add(parts.place.bias)))));
}

at::Tensor TorchDecoder::after(std::size_t gene, const at::Tensor& state,
                               const at::Tensor& taken) const {
  return state.add(at::matmul(taken, genes_[gene].choices.weights));
}

TorchOptimizer TorchDecoder::optimizer(double decay) const {
  auto layers = context_;
  layers.push_back(hidden_);
  for (const auto& gene : genes_) {
    layers.push_back(gene.place);
    layers.push_back(gene.choices);
    layers.push_back(gene.out);
  }
  return optimizer_of(layers, decay);
}

learned::OptimizerNetwork::Parts TorchDecoder::parts() const {
  learned::OptimizerNetwork::Parts parts{.context = {}, .hidden = numbers_of(hidden_), .genes = {}};
  for (const auto& layer : context_) parts.context.push_back(numbers_of(layer));
  for (const auto& gene : genes_) {
    parts.genes.push_back({.place = numbers_of(gene.place),
                           .choices = numbers_of(gene.choices),
                           .out = numbers_of(gene.out)});
  }
  return parts;
}

}  // namespace fleetfit::train
