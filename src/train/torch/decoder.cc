#include "train/torch/decoder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/matmul.h>

namespace fleetfit::train {

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
