#include "train/torch/learned_parameters.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fleetfit/core/counting.h"
#include "train/torch/border.h"
#include "train/torch/learned.h"

namespace fleetfit::train {

at::Tensor TorchDesignNetwork::operator()(const at::Tensor& designs) const {
  auto values = designs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0) values = at::relu(values);
    values = layers[i](values);
  }
  return values.add(skip(designs));
}

TorchLayer new_layer(std::size_t inputs, std::size_t outputs, double size, core::Random random,
                     Compute compute) {
  const double bound = size * std::sqrt(3.0 / static_cast<double>(inputs));
  std::vector<float> weights(inputs * outputs);
  for (float& weight : weights) weight = static_cast<float>(random.uniform(-bound, bound));
  const auto device = device_of(compute);
  TorchLayer layer{.weights = tensor_of(weights, whole(inputs), whole(outputs)).to(device),
                   .bias = tensor_of(std::vector<float>(outputs), 1, whole(outputs)).to(device)};
  layer.weights.set_requires_grad(true);
  layer.bias.set_requires_grad(true);
  return layer;
}

TorchLayer frozen_layer(const predict::DenseLayer& layer, Compute compute) {
  const auto device = device_of(compute);
  const auto outputs = whole(layer.outputs);
  return {.weights = tensor_of(layer.weights, whole(layer.inputs), outputs).to(device),
          .bias = tensor_of(layer.bias, 1, outputs).to(device)};
}

predict::DenseLayer numbers_of(const TorchLayer& layer) {
  return {.inputs = static_cast<std::size_t>(layer.weights.size(0)),
          .outputs = static_cast<std::size_t>(layer.weights.size(1)),
          .weights = numbers_of(layer.weights.detach().to(at::kCPU)),
          .bias = numbers_of(layer.bias.detach().to(at::kCPU))};
}

TorchOptimizer optimizer_of(const std::vector<TorchLayer>& layers, double decay) {
  std::vector<at::Tensor> parameters;
  std::vector<bool> decaying;
  for (const auto& layer : layers) {
    parameters.push_back(layer.weights);
    decaying.push_back(true);
    parameters.push_back(layer.bias);
    decaying.push_back(false);
  }
  return {std::move(parameters),
          std::move(decaying),
          {.kind = OptimizerKind::adam, .decay = decay, .max_norm = 5}};
}

double rate_at(double rate, std::size_t step, std::size_t steps) {
  const double share = static_cast<double>(step) / static_cast<double>(steps);
  constexpr double kRise = 0.05;
  if (share < kRise) return rate * (share / kRise + 0.02);
  return rate * 0.5 * (1 + std::cos(std::numbers::pi * (share - kRise) / (1 - kRise)));
}

bool goes_on(std::size_t step, std::size_t steps, const FitProgress& progress) {
  constexpr std::size_t kReport = 50;
  if (step % kReport != kReport - 1 && step + 1 != steps) return true;
  return progress(static_cast<double>(step + 1) / static_cast<double>(steps));
}

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

namespace {

/// Gives numbers of rows in random order, over and over.
class RowOrder {
 public:
  RowOrder(std::size_t rows, core::Random random)
      : random_(random), order_(core::counting(whole(rows))), at_(rows) {}

  at::Tensor next(std::size_t count) {
    std::vector<std::int64_t> taken;
    while (taken.size() < count) {
      if (at_ == order_.size()) {
        random_.shuffle(order_);
        at_ = 0;
      }
      taken.push_back(order_[at_++]);
    }
    return tensor_of(taken);
  }

 private:
  core::Random random_;
  std::vector<std::int64_t> order_;
  std::size_t at_;
};

class DesignFit {
 public:
  DesignFit(const DesignFitData& data, const DesignFitOptions& options, const core::Random& random)
      : options_(options), ridge_(data.ridge) {
    const auto device = device_of(options.compute);
    const std::size_t designs = data.designs.size() / data.columns;
    const std::size_t devices = data.devices.size() / data.outputs;
    designs_ = tensor_of(data.designs, whole(designs), whole(data.columns)).to(device);
    devices_ = tensor_of(data.devices, whole(devices), whole(data.outputs)).to(device).t();
    const auto numbers = tensor_of(data.numbers, whole(devices), whole(designs)).t();
    known_ = numbers.eq(numbers).to(at::kFloat).contiguous().to(device);
    numbers_ = numbers.nan_to_num(0.0).contiguous().to(device);
    std::size_t inputs = data.columns;
    for (std::size_t i = 0; i < options.widths.size(); ++i) {
      network_.layers.push_back(
          new_layer(inputs, options.widths[i], std::sqrt(2.0), random.split(i), options.compute));
      inputs = options.widths[i];
    }
    network_.layers.push_back(
        new_layer(inputs, data.outputs, 0.3, random.split("last"), options.compute));
    network_.skip =
        new_layer(data.columns, data.outputs, 0.1, random.split("skip"), options.compute);
    // A few of many columns are 1: without this, sums of them would be too small to begin with.
    const at::NoGradGuard no_gradients;
    network_.layers[0].weights.mul_(std::sqrt(static_cast<double>(data.columns) / 8.0));
  }

  bool run(const core::Random& random, const FitProgress& progress) {
    auto all = network_.layers;
    all.push_back(network_.skip);
    auto optimizer = optimizer_of(all, options_.decay);
    RowOrder order(static_cast<std::size_t>(designs_.size(0)), random.split("order"));
    const std::size_t batch = std::min(options_.batch, static_cast<std::size_t>(designs_.size(0)));
    for (std::size_t step = 0; step < options_.steps; ++step) {
      loss(order.next(batch).to(designs_.device())).backward();
      optimizer.step(rate_at(options_.rate, step, options_.steps));
      if (!goes_on(step, options_.steps, progress)) return false;
    }
    return true;
  }

  learned::DesignNetwork::Parts parts() const {
    learned::DesignNetwork::Parts parts{.layers = {}, .skip = numbers_of(network_.skip)};
    for (const auto& layer : network_.layers) parts.layers.push_back(numbers_of(layer));
    return parts;
  }

 private:
  at::Tensor loss(const at::Tensor& chosen) const {
    const auto given = network_(at::index_select(designs_, 0, chosen));
    const auto known = at::index_select(known_, 0, chosen);
    const auto errors =
        at::matmul(given, devices_).sub(at::index_select(numbers_, 0, chosen)).mul(known);
    auto result = errors.square().sum().div(known.sum().clamp_min(1.0));
    if (ridge_ > 0 && given.size(1) > 1) {
      const auto slopes = given.narrow(1, 1, given.size(1) - 1);
      result = result.add(slopes.square().sum().mul(ridge_ / static_cast<double>(given.size(0))));
    }
    return result;
  }

  DesignFitOptions options_;
  double ridge_;
  at::Tensor designs_;
  at::Tensor devices_;  // outputs x devices
  at::Tensor numbers_;  // designs x devices
  at::Tensor known_;
  TorchDesignNetwork network_;
};

}  // namespace

Result<learned::DesignNetwork::Parts> fit_design_network(const DesignFitData& data,
                                                         const DesignFitOptions& options,
                                                         const core::Random& random,
                                                         const FitProgress& progress) {
  return guarded([&]() -> Result<learned::DesignNetwork::Parts> {
    DesignFit fit(data, options, random);
    if (!fit.run(random, progress)) return fail(ErrorCode::cancelled, "training was interrupted");
    return fit.parts();
  });
}

}  // namespace fleetfit::train
