#include "train/torch_parameters.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/relu.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "train/torch_fits.h"
#include "train/torch_threads.h"

namespace fleetfit::train {
namespace {

constexpr double kMeanMemory = 0.9;
constexpr double kSquareMemory = 0.999;
constexpr double kTiny = 1e-8;

}  // namespace

void use_one_thread_per_fit() { use_threads(1); }

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
  ++steps_;
  for (auto& parameter : parameters_) step(parameter, rate);
}

void TorchParameters::step(Parameter& parameter, double rate) const {
  auto& gradient = parameter.value.mutable_grad();
  if (!gradient.defined()) return;
  const auto slopes = gradient.contiguous();
  const float* const slope = slopes.data_ptr<float>();
  float* const value = parameter.value.data_ptr<float>();

  const auto decay = static_cast<float>(decay_);
  const auto mean_memory = static_cast<float>(kMeanMemory);
  const auto square_memory = static_cast<float>(kSquareMemory);
  const auto reach = static_cast<float>(rate / (1 - std::pow(kMeanMemory, steps_)));
  const auto square_reach = static_cast<float>(1 / std::sqrt(1 - std::pow(kSquareMemory, steps_)));
  const auto tiny = static_cast<float>(kTiny);
  for (std::size_t i = 0; i < parameter.mean.size(); ++i) {
    const float g = slope[i] + decay * value[i];
    float& mean = parameter.mean[i];
    float& square = parameter.square[i];
    mean = mean_memory * mean + (1 - mean_memory) * g;
    square = square_memory * square + (1 - square_memory) * g * g;
    value[i] -= reach * mean / (std::sqrt(square) * square_reach + tiny);
  }
  gradient.reset();
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

}  // namespace fleetfit::train
