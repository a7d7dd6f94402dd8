#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "fleetfit/learned/networks.h"
#include "train/torch/learned.h"
#include "train/torch/learned_parameters.h"

namespace fleetfit::train {

/// An optimizer network that is trained; learned::OptimizerNetwork says how it is built.
class TorchDecoder {
 public:
  TorchDecoder(const space::Space& space, std::size_t inputs, const OptimizerFitOptions& options,
               const core::Random& random);

  std::size_t genes() const { return genes_.size(); }

  /// The state before the first gene.
  at::Tensor context(const at::Tensor& inputs) const;

  at::Tensor logits(std::size_t gene, const at::Tensor& state) const;

  /// The state after a gene; `taken` has shares of its choices in each row, all 0 where the gene is
  /// not active.
  at::Tensor after(std::size_t gene, const at::Tensor& state, const at::Tensor& taken) const;

  TorchOptimizer optimizer(double decay) const;
  learned::OptimizerNetwork::Parts parts() const;

 private:
  struct Gene {
    TorchLayer place;
    TorchLayer choices;
    TorchLayer out;
  };

  std::vector<TorchLayer> context_;
  TorchLayer hidden_;
  std::vector<Gene> genes_;
};

}  // namespace fleetfit::train
