#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace fleetfit::train {

/// The Adam optimizer for tensors that learn together; its memory can be kept in a checkpoint.
class TorchAdam {
 public:
  explicit TorchAdam(std::vector<at::Tensor> parameters);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// A gradient for each parameter; undefined ones are left out.
  void step(const std::vector<at::Tensor>& gradients, double rate);

  /// Its memory, in a fixed order; filling these tensors restores it.
  std::vector<at::Tensor> state() const;

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> means_;
  std::vector<at::Tensor> squares_;
  at::Tensor steps_;  // one whole number, on the CPU
};

}  // namespace fleetfit::train
