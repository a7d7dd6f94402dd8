#include "train/torch/parameters.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/threshold_backward.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace fleetfit::train {

at::Tensor tensor_of(std::span<const float> values, std::int64_t rows, std::int64_t columns) {
  auto tensor = at::empty({rows, columns}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.data_ptr<float>());
  return tensor;
}

at::Tensor tensor_of(std::span<const std::int64_t> values) {
  auto tensor = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<std::int64_t>());
  return tensor;
}

std::vector<float> numbers_of(const at::Tensor& tensor) {
  const auto flat = tensor.detach().contiguous();
  const auto* const first = flat.data_ptr<float>();
  return {first, first + flat.numel()};
}

std::vector<std::vector<float>> numbers_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<float>> numbers;
  for (const auto& tensor : tensors) numbers.push_back(numbers_of(tensor.to(at::kCPU)));
  return numbers;
}

bool put_numbers(const std::vector<std::vector<float>>& numbers,
                 const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_gradients;
  const auto fits = [](const at::Tensor& tensor, const std::vector<float>& own) {
    return tensor.numel() == std::ssize(own);
  };
  if (!std::ranges::equal(tensors, numbers, fits)) return false;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto own = numbers[i];
    tensors[i].copy_(at::from_blob(own.data(), tensors[i].sizes(), at::kFloat));
  }
  return true;
}

void TorchParameters::add(std::vector<float> values, std::size_t rows, std::size_t columns) {
  auto tensor =
      tensor_of(values, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns));
  tensor.set_requires_grad(true);
  parameters_.push_back({.value = std::move(tensor),
                         .mean = std::vector<float>(values.size()),
                         .square = std::vector<float>(values.size()),
                         .kept = std::move(values)});
}

void TorchParameters::add_layer(std::size_t inputs, std::size_t outputs, core::Random random) {
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
  std::vector<float> weights(inputs * outputs);
  for (float& weight : weights) weight = static_cast<float>(random.uniform(-bound, bound));
  add(std::move(weights), inputs, outputs);
  add(std::vector<float>(outputs), 1, outputs);
}

at::Tensor TorchParameters::apply(std::size_t layer, const at::Tensor& values) const {
  return at::addmm(parameters_[2 * layer + 1].value, values, parameters_[2 * layer].value);
}

at::Tensor TorchParameters::apply_chain(std::size_t first, std::size_t last,
                                        at::Tensor values) const {
  for (std::size_t layer = first; layer < last; ++layer) {
    values = apply(layer, values);
    if (layer + 1 < last) values = at::relu(values);
  }
  return values;
}

void TorchParameters::learn(const at::Tensor& values, const at::Tensor& slope,
                            const at::Tensor& offset, double rate) {
  const auto errors = values.mul(slope).add(offset);
  errors.mul(errors).mean().backward();
  const auto adam = adam_rate(rate, decay_, ++steps_);
  for (auto& parameter : parameters_) {
    auto& gradient = parameter.value.mutable_grad();
    if (!gradient.defined()) continue;
    step(parameter, gradient, adam);
    gradient.reset();
  }
}

// Gradients of a chain are quickly written down. In networks as small as these what autograd notes
// for each operation costs three times as much as the operations do.
void TorchParameters::learn_chain(const at::Tensor& rows, const at::Tensor& slope,
                                  const at::Tensor& offset, double rate) {
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  std::vector<at::Tensor> inputs{rows};  // of each layer, and what comes out
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    inputs.push_back(apply(layer, inputs.back()));
    if (layer + 1 < layers()) inputs.back().relu_();
  }
  const auto adam = adam_rate(rate, decay_, ++steps_);
  const double share = 2.0 / static_cast<double>(rows.size(0));
  auto gradient = inputs.back().mul(slope).add_(offset).mul_(slope).mul_(share);
  for (std::size_t layer = layers(); layer-- > 0;) {
    auto& weights = parameters_[2 * layer];
    const auto of_weights = inputs[layer].t().mm(gradient);
    step(parameters_[2 * layer + 1], gradient.sum(0, true), adam);
    if (layer > 0)
      gradient = at::threshold_backward(gradient.mm(weights.value.t()), inputs[layer], 0);
    step(weights, of_weights, adam);
  }
}

void TorchParameters::step(Parameter& parameter, const at::Tensor& gradient, const AdamRate& rate) {
  const auto slopes = gradient.contiguous();
  const std::size_t count = parameter.mean.size();
  adam_step(rate, {slopes.data_ptr<float>(), count}, parameter.mean, parameter.square,
            {parameter.value.data_ptr<float>(), count});
}

void TorchParameters::keep() {
  for (auto& parameter : parameters_) {
    std::memcpy(parameter.kept.data(), parameter.value.data_ptr<float>(),
                parameter.kept.size() * sizeof(float));
  }
}

std::vector<predict::DenseLayer> TorchParameters::kept(std::size_t first, std::size_t last) const {
  std::vector<predict::DenseLayer> layers;
  for (std::size_t layer = first; layer < last; ++layer) {
    const auto& weights = parameters_[2 * layer];
    layers.push_back({.inputs = static_cast<std::size_t>(weights.value.size(0)),
                      .outputs = static_cast<std::size_t>(weights.value.size(1)),
                      .weights = weights.kept,
                      .bias = parameters_[2 * layer + 1].kept});
  }
  return layers;
}

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
