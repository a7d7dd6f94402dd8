#include "train/torch/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fleetfit::train {

TorchOptimizer::TorchOptimizer(std::vector<at::Tensor> parameters, std::vector<bool> decaying,
                               const OptimizerOptions& options)
    : parameters_(std::move(parameters)),
      decaying_(std::move(decaying)),
      options_(options),
      steps_(at::zeros({1}, at::kFloat)) {
  for (const auto& parameter : parameters_) {
    means_.push_back(at::zeros_like(parameter.detach()));
    if (options_.kind == OptimizerKind::adam)
      squares_.push_back(at::zeros_like(parameter.detach()));
  }
}

std::vector<at::Tensor> TorchOptimizer::state() const {
  auto all = means_;
  all.insert(all.end(), squares_.begin(), squares_.end());
  all.push_back(steps_);
  return all;
}

void TorchOptimizer::cut_gradients() {
  double squares = 0;
  for (const auto& parameter : parameters_) {
    if (!parameter.grad().defined()) continue;
    squares += parameter.grad().square().sum().item<double>();
  }
  const double norm = std::sqrt(squares);
  if (!(norm > options_.max_norm)) return;
  for (auto& parameter : parameters_)
    if (parameter.grad().defined()) parameter.mutable_grad().mul_(options_.max_norm / norm);
}

void TorchOptimizer::step_sgd(std::size_t i, const at::Tensor& gradient, double rate) {
  auto& parameter = parameters_[i];
  auto slope = gradient;
  if (decaying_[i]) slope.add_(parameter, options_.decay);
  means_[i].mul_(options_.momentum).add_(slope);
  parameter.sub_(slope.add_(means_[i], options_.momentum), rate);
}

void TorchOptimizer::step_adam(std::size_t i, const at::Tensor& gradient, double rate) {
  constexpr double kTiny = 1e-8;
  auto& parameter = parameters_[i];
  const double steps = steps_.item<double>();
  if (decaying_[i]) parameter.mul_(1 - rate * options_.decay);
  means_[i].mul_(options_.momentum).add_(gradient, 1 - options_.momentum);
  squares_[i].mul_(options_.square_memory).addcmul_(gradient, gradient, 1 - options_.square_memory);
  const double scale = std::sqrt(1 - std::pow(options_.square_memory, steps));
  const auto deviation = squares_[i].sqrt().div_(scale).add_(kTiny);
  parameter.addcdiv_(means_[i], deviation, -rate / (1 - std::pow(options_.momentum, steps)));
}

void TorchOptimizer::step(double rate) {
  const at::NoGradGuard no_gradients;
  if (options_.max_norm > 0) cut_gradients();
  steps_.add_(1);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& gradient = parameters_[i].mutable_grad();
    if (!gradient.defined()) continue;
    if (options_.kind == OptimizerKind::sgd) {
      step_sgd(i, gradient, rate);
    } else {
      step_adam(i, gradient, rate);
    }
    gradient.reset();
  }
}

double one_cycle_rate(double highest, std::int64_t step, std::int64_t steps) {
  constexpr double kWarmUp = 0.2;
  constexpr double kStart = 0.1;
  const double at =
      (static_cast<double>(step) + 0.5) / static_cast<double>(std::max<std::int64_t>(steps, 1));
  if (at < kWarmUp) return highest * (kStart + (1 - kStart) * at / kWarmUp);
  const double fall = (at - kWarmUp) / (1 - kWarmUp);
  return highest * 0.5 * (1 + std::cos(std::numbers::pi * std::min(fall, 1.0)));
}

}  // namespace fleetfit::train
