#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace fleetfit::train {

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
