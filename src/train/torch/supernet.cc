#include "train/torch/supernet.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "train/torch/border.h"
#include "train/torch/network.h"
#include "train/torch/parameters.h"

namespace fleetfit::train {
namespace {

using at::Tensor;

// Images that the original looks at at once. Pieces of a batch run side by side; their size is
// fixed, so that the number of threads changes nothing.
constexpr std::int64_t kPiece = 32;
constexpr double kStatisticsMomentum = 0.1;

/// Several threads work on tensors of their own, each alone, so that sums are always taken in the
/// same order.
void stay_on_one_thread() {
  thread_local const bool done = [] {
    use_threads(1);
    return true;
  }();
  static_cast<void>(done);
}

/// A branch that learns.
struct Learner {
  std::size_t block;
  std::size_t branch;
  std::size_t end;  // the block behind it
  std::unique_ptr<TorchNetwork> network;
  std::vector<Tensor> parameters;
  TorchOptimizer optimizer;
  std::size_t batches = 0;  // that its statistics are made of while they are renewed
};

/// Labels in the shape of the classes that were found: one for each image, or for each pixel.
Tensor fitted(const Tensor& labels, const Tensor& logits) {
  auto shape = logits.sizes().vec();
  shape.erase(shape.begin() + 1);
  return labels.view(shape);
}

/// The squared error relative to the power of what was asked for: early and late blocks count
/// alike.
Tensor relative_error(const Tensor& found, const Tensor& wanted) {
  return at::mse_loss(found, wanted) / wanted.square().mean().clamp_min(1e-12);
}

ClassCounts counts_of(const Tensor& output, const Tensor& labels) {
  const auto found = output.argmax(1).flatten();
  const auto wanted = labels.flatten();
  const auto counted = [&](const Tensor& classes) {
    const auto counts = at::bincount(classes, {}, output.size(1)).to(at::kCPU);
    const auto* const first = counts.data_ptr<std::int64_t>();
    return std::vector<std::int64_t>(first, first + counts.numel());
  };
  return {.found = counted(found),
          .wanted = counted(wanted),
          .both = counted(wanted.masked_select(found.eq(wanted)))};
}

class Net final : public TorchSupernet {
 public:
  Net(elastic::Supernet supernet, const at::Device& device, core::ThreadPool& pool)
      : given_(std::move(supernet)), device_(device), pool_(pool) {}

  Status build();

  Result<double> distill(const TorchBatch& batch, double rate) override;
  Result<double> distill_subnet(const TorchBatch& batch, const SubnetPath& subnet,
                                double rate) override;
  Result<double> tune(const TorchBatch& batch, const TuneStep& step) override;
  void renew_statistics() override;
  Status add_statistics(const TorchBatch& batch, const SubnetPath& subnet) override;
  Result<std::vector<ClassCounts>> count_classes(const TorchBatch& batch,
                                                 std::span<const SubnetPath> subnets) override;
  bool takes(const ImageForm& form) const override;
  std::vector<std::vector<float>> state() const override { return numbers_of(tensors()); }
  Status restore(const std::vector<std::vector<float>>& state) override;
  elastic::Supernet supernet() const override;

 private:
  /// Gradients of the learners on one way.
  struct Gradients {
    double loss = 0;
    std::vector<std::size_t> learners;
    std::vector<Tensor> values;  // of all parameters of the first, then of the second, …
  };

  Status add_learner(std::size_t block, std::size_t branch);
  void use_batch_statistics(double momentum);
  void use_kept_statistics();
  void each(std::size_t count, const std::function<void(std::size_t)>& body) const;

  /// The images, then what each block of the original makes of them.
  std::vector<Tensor> original_borders(const Tensor& images) const;
  /// Told what a subnet gives at a border from its first branch on, its output aside.
  using AtBorder = std::function<void(std::size_t border, const Tensor& features)>;
  Tensor run(const SubnetPath& path, const std::vector<Tensor>& borders,
             const AtBorder& look = {}) const;
  Tensor subnet_loss(const SubnetPath& path, const std::vector<Tensor>& borders,
                     const Tensor& labels, const TuneStep& step) const;
  Tensor logits(const Tensor& output) const;
  Tensor class_loss(const Tensor& found, const Tensor& labels, const Tensor& original,
                    double soft_share) const;
  std::vector<std::size_t> learners_on(const SubnetPath& path) const;
  Gradients gradients(const Tensor& loss, std::vector<std::size_t> learners) const;
  void take_step(const std::vector<Gradients>& found, double rate);
  double distill_one(Learner& learner, const std::vector<Tensor>& borders, double rate) const;
  std::vector<Tensor> tensors() const;

  elastic::Supernet given_;
  at::Device device_;
  core::ThreadPool& pool_;
  std::vector<std::unique_ptr<TorchNetwork>> originals_;  // by block
  std::vector<Learner> learners_;
  std::vector<std::vector<std::size_t>> learner_at_;  // by block and branch, from the second on
  bool ends_in_softmax_ = false;
};

Status Net::build() {
  for (std::size_t b = 0; b < given_.blocks.size(); ++b) {
    FLEETFIT_ASSIGN(auto original,
                    TorchNetwork::create(given_.blocks[b].branches.front().graph, device_));
    for (auto& parameter : original->parameters()) parameter.set_requires_grad(false);
    originals_.push_back(std::move(original));
    learner_at_.emplace_back();
    for (std::size_t i = 1; i < given_.blocks[b].branches.size(); ++i) {
      FLEETFIT_TRY(add_learner(b, i));
    }
  }
  const auto& last = given_.blocks.back().branches.front().graph;
  const auto* const softmax = std::get_if<graph::Softmax>(&last.nodes.back().op);
  ends_in_softmax_ = softmax != nullptr && !softmax->log;
  return {};
}

Status Net::add_learner(std::size_t block, std::size_t branch) {
  const auto& described = given_.blocks[block].branches[branch];
  FLEETFIT_ASSIGN(auto network, TorchNetwork::create(described.graph, device_));
  auto parameters = network->parameters();
  for (auto& parameter : parameters) parameter.set_requires_grad(true);
  learner_at_[block].push_back(learners_.size());
  learners_.push_back({.block = block,
                       .branch = branch,
                       .end = block + described.span,
                       .network = std::move(network),
                       .parameters = parameters,
                       .optimizer = TorchOptimizer(parameters, std::vector<bool>(parameters.size()),
                                                   {.kind = OptimizerKind::adam})});
  return {};
}

void Net::use_batch_statistics(double momentum) {
  for (auto& learner : learners_) learner.network->batch_statistics(true, momentum);
}

void Net::use_kept_statistics() {
  for (auto& learner : learners_) learner.network->batch_statistics(false, 0);
}

void Net::each(std::size_t count, const std::function<void(std::size_t)>& body) const {
  if (device_.is_cuda()) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  pool_.parallel_for(count, [&](std::size_t i) {
    stay_on_one_thread();
    body(i);
  });
}

std::vector<Tensor> Net::original_borders(const Tensor& images) const {
  const auto pieces = device_.is_cuda() ? std::vector{images} : images.split(kPiece);
  std::vector<std::vector<Tensor>> parts(originals_.size(), std::vector<Tensor>(pieces.size()));
  each(pieces.size(), [&](std::size_t piece) {
    const at::NoGradGuard at_work;
    auto x = pieces[piece];
    for (std::size_t b = 0; b < originals_.size(); ++b) {
      x = originals_[b]->forward_one(x);
      parts[b][piece] = x;
    }
  });
  std::vector<Tensor> borders{images};
  for (const auto& part : parts) borders.push_back(part.size() == 1 ? part.front() : at::cat(part));
  return borders;
}

/// The output of a subnet. What lies before its first branch was computed already.
Tensor Net::run(const SubnetPath& path, const std::vector<Tensor>& borders,
                const AtBorder& look) const {
  auto step =
      std::ranges::find_if(path, [](const elastic::BranchId& id) { return id.branch != 0; });
  if (step == path.end()) return borders.back();
  auto x = borders[step->block];
  for (; step != path.end(); ++step) {
    const auto* const learner =
        step->branch == 0 ? nullptr : &learners_[learner_at_[step->block][step->branch - 1]];
    x = (learner == nullptr ? originals_[step->block] : learner->network)->forward_one(x);
    const auto border = learner == nullptr ? step->block + 1 : learner->end;
    if (look && border + 1 < borders.size()) look(border, x);
  }
  return x;
}

Tensor Net::logits(const Tensor& output) const {
  constexpr double kLeastProbability = 1e-12;
  return ends_in_softmax_ ? output.clamp_min(kLeastProbability).log() : output;
}

Tensor Net::class_loss(const Tensor& found, const Tensor& labels, const Tensor& original,
                       double soft_share) const {
  const auto scores = at::log_softmax(logits(found), 1);
  auto loss = at::nll_loss_nd(scores, fitted(labels, scores)) * (1 - soft_share);
  if (soft_share > 0) {
    const auto wanted = at::softmax(logits(original), 1);
    loss = loss - (wanted * scores).sum(1).mean() * soft_share;
  }
  return loss;
}

// ---- distillation

double Net::distill_one(Learner& learner, const std::vector<Tensor>& borders, double rate) const {
  const auto loss =
      relative_error(learner.network->forward_one(borders[learner.block]), borders[learner.end]);
  loss.backward();
  learner.optimizer.step(rate);
  return loss.item<double>();
}

Result<double> Net::distill(const TorchBatch& batch, double rate) {
  return guarded([&] {
    const auto borders = original_borders(batch.images);
    use_batch_statistics(kStatisticsMomentum);
    std::vector<double> errors(learners_.size());
    each(learners_.size(),
         [&](std::size_t i) { errors[i] = distill_one(learners_[i], borders, rate); });
    double sum = 0;
    for (const double error : errors) sum += error;
    return sum / static_cast<double>(std::max<std::size_t>(errors.size(), 1));
  });
}

Result<double> Net::distill_subnet(const TorchBatch& batch, const SubnetPath& subnet, double rate) {
  auto learners = learners_on(subnet);
  if (learners.empty()) return 0.0;
  return guarded([&] {
    stay_on_one_thread();
    const auto borders = original_borders(batch.images);
    use_batch_statistics(kStatisticsMomentum);
    auto x = borders.front();
    auto loss = at::zeros({}, x.options());
    for (const auto& step : subnet) {
      if (step.branch == 0) {
        x = originals_[step.block]->forward_one(x);
        continue;
      }
      const auto& learner = learners_[learner_at_[step.block][step.branch - 1]];
      x = learner.network->forward_one(x);
      loss = loss + at::mse_loss(x, borders[learner.end]);
    }
    loss = loss / static_cast<double>(learners.size());
    take_step({gradients(loss, std::move(learners))}, rate);
    return loss.item<double>();
  });
}

// ---- tuning

std::vector<std::size_t> Net::learners_on(const SubnetPath& path) const {
  std::vector<std::size_t> learners;
  for (const auto& step : path) {
    if (step.branch != 0) learners.push_back(learner_at_[step.block][step.branch - 1]);
  }
  return learners;
}

Net::Gradients Net::gradients(const Tensor& loss, std::vector<std::size_t> learners) const {
  std::vector<Tensor> parameters;
  for (const std::size_t i : learners) {
    const auto& own = learners_[i].parameters;
    parameters.insert(parameters.end(), own.begin(), own.end());
  }
  return {.loss = loss.item<double>(),
          .learners = std::move(learners),
          .values = torch::autograd::grad({loss}, parameters, {}, {}, /*create_graph=*/false,
                                          /*allow_unused=*/true)};
}

/// Gradients of a branch that is on several ways are added up in the order of the ways.
void Net::take_step(const std::vector<Gradients>& found, double rate) {
  std::vector<bool> steps(learners_.size());
  for (const auto& way : found) {
    auto value = way.values.begin();
    for (const std::size_t i : way.learners) {
      steps[i] = true;
      for (auto& parameter : learners_[i].parameters) {
        auto& sum = parameter.mutable_grad();
        if (value->defined()) sum = sum.defined() ? sum + *value : *value;
        ++value;
      }
    }
  }
  each(learners_.size(), [&](std::size_t i) {
    if (steps[i]) learners_[i].optimizer.step(rate);
  });
}

/// That of the classes, and the mean error of the features on the way.
Tensor Net::subnet_loss(const SubnetPath& path, const std::vector<Tensor>& borders,
                        const Tensor& labels, const TuneStep& step) const {
  std::vector<Tensor> errors;
  AtBorder look;
  if (step.feature_weight > 0) {
    look = [&](std::size_t border, const Tensor& features) {
      errors.push_back(relative_error(features, borders[border]));
    };
  }
  const auto output = run(path, borders, look);
  const auto loss = class_loss(output, labels, borders.back(), step.soft_share);
  return errors.empty() ? loss : loss + at::stack(errors).mean() * step.feature_weight;
}

Result<double> Net::tune(const TorchBatch& batch, const TuneStep& step) {
  return guarded([&] {
    const auto borders = original_borders(batch.images);
    use_batch_statistics(step.statistics == Statistics::follow ? kStatisticsMomentum : 0);
    std::vector<Gradients> found(step.subnets.size());
    each(step.subnets.size(), [&](std::size_t i) {
      auto learners = learners_on(step.subnets[i]);
      const auto loss = subnet_loss(step.subnets[i], borders, batch.labels, step);
      if (learners.empty()) {
        found[i].loss = loss.item<double>();
      } else {
        found[i] = gradients(loss, std::move(learners));
      }
    });
    take_step(found, step.rate);
    double sum = 0;
    for (const auto& way : found) sum += way.loss;
    return sum / static_cast<double>(std::max<std::size_t>(found.size(), 1));
  });
}

// ---- batch norm's statistics

void Net::renew_statistics() {
  for (auto& learner : learners_) learner.batches = 0;
}

Status Net::add_statistics(const TorchBatch& batch, const SubnetPath& subnet) {
  return guarded([&] {
    stay_on_one_thread();
    const at::NoGradGuard at_work;
    for (const std::size_t i : learners_on(subnet)) {
      auto& learner = learners_[i];
      learner.network->batch_statistics(true, 1.0 / static_cast<double>(++learner.batches));
    }
    run(subnet, original_borders(batch.images));
  });
}

// ---- what was learned

bool Net::takes(const ImageForm& form) const {
  return guarded([&] {
           original_borders(at::zeros({1, form.channels, form.height, form.width},
                                      at::TensorOptions().device(device_)));
         })
      .has_value();
}

Result<std::vector<ClassCounts>> Net::count_classes(const TorchBatch& batch,
                                                    std::span<const SubnetPath> subnets) {
  return guarded([&] {
    const auto borders = original_borders(batch.images);
    use_kept_statistics();
    std::vector<ClassCounts> counts(subnets.size());
    each(subnets.size(), [&](std::size_t i) {
      const at::NoGradGuard at_work;
      const auto output = run(subnets[i], borders);
      counts[i] = counts_of(output, fitted(batch.labels, output));
    });
    return counts;
  });
}

std::vector<Tensor> Net::tensors() const {
  std::vector<Tensor> all;
  for (const auto& learner : learners_) {
    for (auto& tensor : learner.network->state()) all.push_back(tensor);
    for (auto& tensor : learner.optimizer.state()) all.push_back(tensor);
  }
  return all;
}

Status Net::restore(const std::vector<std::vector<float>>& state) {
  FLEETFIT_ASSIGN(const bool fits, guarded([&] { return put_numbers(state, tensors()); }));
  return fits ? Status() : refuse("is of another network");
}

elastic::Supernet Net::supernet() const {
  auto supernet = given_;
  for (const auto& learner : learners_)
    supernet.blocks[learner.block].branches[learner.branch].graph = learner.network->graph();
  return supernet;
}

}  // namespace

Result<std::unique_ptr<TorchSupernet>> TorchSupernet::create(const elastic::Supernet& supernet,
                                                             const at::Device& device,
                                                             core::ThreadPool& pool) {
  stay_on_one_thread();
  auto net = std::make_unique<Net>(supernet, device, pool);
  FLEETFIT_TRY(net->build());
  return net;
}

}  // namespace fleetfit::train
