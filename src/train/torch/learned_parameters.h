#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>

#include <cstdint>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/learned/networks.h"
#include "fleetfit/predict/network_parts.h"
#include "train/torch/border.h"
#include "train/torch/learned.h"
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

/// A network over designs, as learned::DesignNetwork.
struct TorchDesignNetwork {
  std::vector<TorchLayer> layers;
  TorchLayer skip;

  at::Tensor operator()(const at::Tensor& designs) const;
};

/// Random weights of this size (times what keeps the size of values) to be trained.
TorchLayer new_layer(std::size_t inputs, std::size_t outputs, double size, core::Random random,
                     Compute compute);

TorchLayer frozen_layer(const predict::DenseLayer& layer, Compute compute);

predict::DenseLayer numbers_of(const TorchLayer& layer);

TorchOptimizer optimizer_of(const std::vector<TorchLayer>& layers, double decay);

/// Rises for a twentieth of the steps, then falls to 0 along a cosine.
double rate_at(double rate, std::size_t step, std::size_t steps);

/// Reports now and then, after a step; false: stop.
bool goes_on(std::size_t step, std::size_t steps, const FitProgress& progress);

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
