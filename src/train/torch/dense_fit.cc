#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/index_select.h>

#include <algorithm>
#include <numeric>

#include "train/torch/fits.h"
#include "train/torch/parameters.h"
#include "train/validation.h"

namespace fleetfit::train {
namespace {

class TorchDenseFit final : public DenseFit {
 public:
  TorchDenseFit(DenseFitData data, const DenseFitOptions& options, const core::Random& random);

  void run_epoch(double rate) override;
  double validation_percent() override;
  void keep() override { parameters_.keep(); }
  std::vector<float> outputs(std::span<const float> rows) override;
  std::vector<predict::DenseLayer> layers() const override {
    return parameters_.kept(0, parameters_.layers());
  }

 private:
  std::int64_t samples() const { return rows_.size(0); }

  DenseFitData data_;
  TorchParameters parameters_;
  core::Random order_;
  at::Tensor rows_;
  at::Tensor slope_;
  at::Tensor offset_;
};

TorchDenseFit::TorchDenseFit(DenseFitData data, const DenseFitOptions& options,
                             const core::Random& random)
    : data_(std::move(data)), parameters_(options.decay), order_(random.split("order")) {
  std::size_t inputs = data_.features;
  for (int layer = 0; layer < options.layers; ++layer) {
    const auto width = static_cast<std::size_t>(options.width);
    parameters_.add_layer(inputs, width, random.split(static_cast<std::uint64_t>(layer)));
    inputs = width;
  }
  parameters_.add_layer(inputs, 1, random.split("last"));

  const auto& targets = data_.training.targets;
  const auto count = static_cast<std::int64_t>(targets.slope.size());
  rows_ = tensor_of(data_.training.rows, count, static_cast<std::int64_t>(data_.features));
  slope_ = tensor_of(targets.slope, count, 1);
  offset_ = tensor_of(targets.offset, count, 1);
}

void TorchDenseFit::run_epoch(double rate) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(samples()));
  std::iota(order.begin(), order.end(), 0);
  order_.shuffle(order);
  const auto chosen = tensor_of(order);
  const auto rows = at::index_select(rows_, 0, chosen);
  const auto slope = at::index_select(slope_, 0, chosen);
  const auto offset = at::index_select(offset_, 0, chosen);
  const auto batch = static_cast<std::int64_t>(batch_size(order.size()));
  for (std::int64_t first = 0; first < samples(); first += batch) {
    const std::int64_t count = std::min(batch, samples() - first);
    parameters_.learn_chain(rows.narrow(0, first, count), slope.narrow(0, first, count),
                            offset.narrow(0, first, count), rate);
  }
}

std::vector<float> TorchDenseFit::outputs(std::span<const float> rows) {
  const at::NoGradGuard at_work;
  const auto features = static_cast<std::int64_t>(data_.features);
  return numbers_of(parameters_.apply_chain(
      0, parameters_.layers(),
      tensor_of(rows, static_cast<std::int64_t>(rows.size()) / features, features)));
}

double TorchDenseFit::validation_percent() {
  return percent_error(outputs(data_.validation.rows), data_.validation.targets.ms, data_.output);
}

}  // namespace

std::unique_ptr<DenseFit> make_dense_fit(DenseFitData data, const DenseFitOptions& options,
                                         const core::Random& random) {
  return std::make_unique<TorchDenseFit>(std::move(data), options, random);
}

}  // namespace fleetfit::train
