#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fleetfit/core/random.h"
#include "fleetfit/predict/network_parts.h"
#include "train/adam.h"

namespace fleetfit::train {

/// Numbers as a tensor that owns them.
at::Tensor tensor_of(std::span<const float> values, std::int64_t rows, std::int64_t columns);
at::Tensor tensor_of(std::span<const std::int64_t> values);
std::vector<float> numbers_of(const at::Tensor& tensor);

/// The numbers of each tensor, for checkpoints, and back; false if they do not fit.
std::vector<std::vector<float>> numbers_of(const std::vector<at::Tensor>& tensors);
bool put_numbers(const std::vector<std::vector<float>>& numbers,
                 const std::vector<at::Tensor>& tensors);

/// The weights and biases of dense layers, with the Adam optimizer.
class TorchParameters {
 public:
  explicit TorchParameters(double decay) : decay_(decay) {}

  /// A layer with random weights whose outputs are about as large as its inputs, ReLU reckoned
  /// with.
  void add_layer(std::size_t inputs, std::size_t outputs, core::Random random);

  std::size_t layers() const { return parameters_.size() / 2; }

  /// values x weights + bias of a layer.
  at::Tensor apply(std::size_t layer, const at::Tensor& values) const;

  /// Layers [first, last) with ReLU between them.
  at::Tensor apply_chain(std::size_t first, std::size_t last, at::Tensor values) const;

  /// A step of the optimizer towards a smaller mean of (value x slope + offset)^2.
  void learn(const at::Tensor& values, const at::Tensor& slope, const at::Tensor& offset,
             double rate);

  /// The same for all layers as one chain that is applied to rows.
  void learn_chain(const at::Tensor& rows, const at::Tensor& slope, const at::Tensor& offset,
                   double rate);

  /// What the parameters are now is what `kept` gives from now on.
  void keep();
  std::vector<predict::DenseLayer> kept(std::size_t first, std::size_t last) const;

 private:
  struct Parameter {
    at::Tensor value;
    std::vector<float> mean;    // of the gradient
    std::vector<float> square;  // of its square
    std::vector<float> kept;
  };

  void add(std::vector<float> values, std::size_t rows, std::size_t columns);
  static void step(Parameter& parameter, const at::Tensor& gradient, const AdamRate& rate);

  double decay_;
  int steps_ = 0;
  std::vector<Parameter> parameters_;  // weights and bias of each layer
};

enum class OptimizerKind : std::uint8_t {
  sgd,   ///< with Nesterov's momentum
  adam,  ///< with decay apart from the gradient (AdamW)
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0.9;
  double square_memory = 0.999;  ///< of Adam
  double decay = 5e-4;           ///< of Adam: relative to the rate; usually larger
  double max_norm = 0;           ///< of all gradients together; longer ones are cut; 0: no limit
};

/// Moves parameters along their gradients.
class TorchOptimizer {
 public:
  /// `decaying` says for each parameter whether it decays.
  TorchOptimizer(std::vector<at::Tensor> parameters, std::vector<bool> decaying,
                 const OptimizerOptions& options);

  /// One step with the gradients that `backward` left; clears them. Parameters without a gradient
  /// stay as they are.
  void step(double rate);

  /// What it remembers, in a fixed order, for checkpoints; to be copied into.
  std::vector<at::Tensor> state() const;

 private:
  void cut_gradients();
  void step_sgd(std::size_t i, const at::Tensor& gradient, double rate);
  void step_adam(std::size_t i, const at::Tensor& gradient, double rate);

  std::vector<at::Tensor> parameters_;
  std::vector<bool> decaying_;
  OptimizerOptions options_;
  std::vector<at::Tensor> means_;    // of gradients
  std::vector<at::Tensor> squares_;  // of Adam
  at::Tensor steps_;                 // one number, on the CPU
};

/// The rate of a step: rises from a tenth to the highest in the first fifth of all steps, then
/// falls along a cosine to nearly nothing.
double one_cycle_rate(double highest, std::int64_t step, std::int64_t steps);

}  // namespace fleetfit::train
