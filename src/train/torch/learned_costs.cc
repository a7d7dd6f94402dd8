#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>

#include "fleetfit/core/counting.h"
#include "train/torch/border.h"
#include "train/torch/learned.h"
#include "train/torch/learned_parameters.h"

namespace fleetfit::train {
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
