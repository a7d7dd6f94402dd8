#include "train/torch_adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>

namespace fleetfit::train {
namespace {

constexpr double kMeanMemory = 0.9;
constexpr double kSquareMemory = 0.999;
constexpr double kTiny = 1e-8;

}  // namespace

TorchAdam::TorchAdam(std::vector<at::Tensor> parameters)
    : parameters_(std::move(parameters)), steps_(at::zeros({1}, at::kLong)) {
  for (const auto& parameter : parameters_) {
    means_.push_back(at::zeros_like(parameter));
    squares_.push_back(at::zeros_like(parameter));
  }
}

void TorchAdam::step(const std::vector<at::Tensor>& gradients, double rate) {
  const at::NoGradGuard at_work;
  const auto steps = static_cast<double>(++*steps_.data_ptr<std::int64_t>());
  const double reach = rate / (1 - std::pow(kMeanMemory, steps));
  const double square_reach = 1 / std::sqrt(1 - std::pow(kSquareMemory, steps));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& gradient = gradients[i];
    if (!gradient.defined()) continue;
    means_[i].mul_(kMeanMemory).add_(gradient, 1 - kMeanMemory);
    squares_[i].mul_(kSquareMemory).addcmul_(gradient, gradient, 1 - kSquareMemory);
    const auto size = squares_[i].sqrt().mul_(square_reach).add_(kTiny);
    parameters_[i].addcdiv_(means_[i], size, -reach);
  }
}

std::vector<at::Tensor> TorchAdam::state() const {
  std::vector<at::Tensor> tensors{steps_};
  tensors.insert(tensors.end(), means_.begin(), means_.end());
  tensors.insert(tensors.end(), squares_.begin(), squares_.end());
  return tensors;
}

}  // namespace fleetfit::train
