#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "train/torch/border.h"
#include "train/torch/learned.h"
#include "train/torch/learned_parameters.h"

namespace fleetfit::train {
namespace {

using learned::Goal;
using space::Choice;

std::vector<std::size_t> draw_rows(std::size_t rows, std::size_t count, core::Random& random) {
  std::vector<std::size_t> drawn(count);
  for (auto& row : drawn) row = static_cast<std::size_t>(random.below(rows));
  return drawn;
}

/// A row with a 1 for the choice of each design whose gene is active.
at::Tensor taken_choices(const space::Space& space, const space::Population& designs,
                         std::size_t gene) {
  const std::size_t choices = space.genes()[gene].choices.size();
  std::vector<float> rows(designs.size() * choices);
  for (std::size_t i = 0; i < designs.size(); ++i)
    if (space.is_active(designs[i], gene)) rows[i * choices + designs[i][gene]] = 1;
  return tensor_of(rows, whole(designs.size()), whole(choices));
}

// ---------------------------------------------------------------------------- method 1

/// Minus ln of the probability of the best designs, the mean of a batch.
at::Tensor surprise(const TorchDecoder& decoder, const at::Tensor& inputs,
                    const std::vector<at::Tensor>& taken) {
  auto state = decoder.context(inputs);
  at::Tensor sum;
  for (std::size_t gene = 0; gene < decoder.genes(); ++gene) {
    const auto said = at::log_softmax(decoder.logits(gene, state), 1).mul(taken[gene]).sum();
    sum = gene == 0 ? said : sum.add(said);
    if (gene + 1 < decoder.genes()) state = decoder.after(gene, state, taken[gene]);
  }
  return sum.neg().div(static_cast<double>(inputs.size(0)));
}

bool learn_best(TorchDecoder& decoder, const OptimizerLessons& lessons,
                const OptimizerFitOptions& options, core::Random random,
                const FitProgress& progress) {
  const std::size_t count = lessons.best.size();
  const auto device = device_of(options.compute);
  const auto inputs = tensor_of(lessons.rows, whole(count), whole(lessons.inputs)).to(device);
  std::vector<at::Tensor> taken;
  for (std::size_t gene = 0; gene < decoder.genes(); ++gene)
    taken.push_back(taken_choices(*lessons.space, lessons.best, gene).to(device));
  auto optimizer = decoder.optimizer(options.decay);
  for (std::size_t step = 0; step < options.steps; ++step) {
    std::vector<std::int64_t> drawn;
    for (const auto row : draw_rows(count, options.batch, random))
      drawn.push_back(static_cast<std::int64_t>(row));
    const auto rows = tensor_of(drawn).to(device);
    std::vector<at::Tensor> batch;
    batch.reserve(taken.size());
    for (const auto& one : taken) batch.push_back(at::index_select(one, 0, rows));
    surprise(decoder, at::index_select(inputs, 0, rows), batch).backward();
    optimizer.step(rate_at(options.rate, step, options.steps));
    if (!goes_on(step, options.steps, progress)) return false;
  }
  return true;
}

// ---------------------------------------------------------------------------- method 2

/// A network over designs whose weights do not change.
TorchDesignNetwork frozen_network(const learned::DesignNetwork& network, Compute compute) {
  TorchDesignNetwork frozen{.layers = {}, .skip = frozen_layer(network.parts().skip, compute)};
  for (const auto& layer : network.parts().layers)
    frozen.layers.push_back(frozen_layer(layer, compute));
  return frozen;
}

/// A batch of tasks as tensors.
struct TaskBatch {
  at::Tensor inputs;    // of the decoder
  at::Tensor devices;   // 1 and the device's inputs
  at::Tensor weighted;  // 1 where weights count, else 0
  at::Tensor weights;   // row x cost
  at::Tensor limits;    // ln of the limit without what is the device's own: row x cost
  at::Tensor limited;   // 1 where there is a limit: row x cost
  at::Tensor typical;   // like limits
};

/// What the tasks look like to networks, all of them once.
class TaskTable {
 public:
  TaskTable(const OptimizerTasks& tasks, Compute compute);

  TaskBatch batch(const std::vector<std::size_t>& rows) const;
  std::size_t size() const { return count_; }

 private:
  struct Column {
    std::vector<float> values;
    std::size_t width = 0;
  };
  at::Tensor pick(const Column& column, const std::vector<std::size_t>& rows) const;

  std::size_t count_;
  Compute compute_;
  Column inputs_, devices_, weighted_, weights_, limits_, limited_, typical_;
};

TaskTable::TaskTable(const OptimizerTasks& tasks, Compute compute)
    : count_(tasks.goals.size()), compute_(compute) {
  const auto& parts = tasks.model->parts();
  const std::size_t costs = parts.costs.size();
  inputs_.width = tasks.model->optimizer_inputs();
  devices_.width = parts.device.size() + 1;
  weighted_.width = 1;
  for (auto* column : {&weights_, &limits_, &limited_, &typical_}) column->width = costs;
  for (std::size_t i = 0; i < count_; ++i) {
    const learned::DeviceJudge judge(*tasks.model, tasks.devices[i]);
    const auto& goal = tasks.goals[i];
    const auto row = learned::optimizer_inputs(judge, goal);
    inputs_.values.insert(inputs_.values.end(), row.begin(), row.end());
    devices_.values.push_back(1);
    const auto& device = tasks.devices[i].inputs;
    devices_.values.insert(devices_.values.end(), device.begin(), device.end());
    const bool is_weighted = !goal.weights.empty();
    weighted_.values.push_back(is_weighted ? 1.0F : 0.0F);
    for (std::size_t c = 0; c < costs; ++c) {
      const auto& cost = parts.costs[c];
      const double own = tasks.devices[i].level + cost.offset;
      const bool is_limited = !is_weighted && std::isfinite(goal.limits[c]);
      learned::Judged usual;
      usual.spread[c] = judge.typical_spread(c);
      const double margin = judge.safe(usual, c);
      const double limit = is_limited ? std::log(goal.limits[c]) - margin - own : 0;
      weights_.values.push_back(is_weighted ? static_cast<float>(goal.weights[c]) : 0.0F);
      limited_.values.push_back(is_limited ? 1.0F : 0.0F);
      limits_.values.push_back(static_cast<float>(limit));
      typical_.values.push_back(static_cast<float>(judge.typical(c) - own));
    }
  }
}

at::Tensor TaskTable::pick(const Column& column, const std::vector<std::size_t>& rows) const {
  std::vector<float> values;
  values.reserve(rows.size() * column.width);
  for (const auto row : rows) {
    const auto* const first = &column.values[row * column.width];
    values.insert(values.end(), first, first + column.width);
  }
  return tensor_of(values, whole(rows.size()), whole(column.width)).to(device_of(compute_));
}

TaskBatch TaskTable::batch(const std::vector<std::size_t>& rows) const {
  return {.inputs = pick(inputs_, rows),
          .devices = pick(devices_, rows),
          .weighted = pick(weighted_, rows),
          .weights = pick(weights_, rows),
          .limits = pick(limits_, rows),
          .limited = pick(limited_, rows),
          .typical = pick(typical_, rows)};
}

/// Designs that were drawn, once as they are and once as something with a gradient.
struct Drawn {
  space::Population designs;
  std::vector<at::Tensor> taken;  // of each gene: 1 for the choice; gradients as of shares
  at::Tensor log_probability;     // of each row
  at::Tensor entropy;             // mean over rows and genes
};

std::vector<float> gumbel_noise(std::size_t count, core::Random& random) {
  std::vector<float> noise(count);
  for (float& one : noise)
    one = static_cast<float>(-std::log(-std::log(random.uniform() * 0.999998 + 1e-6)));
  return noise;
}

Drawn draw(const TorchDecoder& decoder, const space::Space& space, const at::Tensor& inputs,
           double temperature, core::Random& random) {
  const auto rows = static_cast<std::size_t>(inputs.size(0));
  const auto device = inputs.device();
  Drawn drawn{.designs = space::Population(space.genes().size(), rows)};
  auto state = decoder.context(inputs);
  for (std::size_t gene = 0; gene < decoder.genes(); ++gene) {
    const std::size_t choices = space.genes()[gene].choices.size();
    const auto logits = decoder.logits(gene, state);
    const auto noise =
        tensor_of(gumbel_noise(rows * choices, random), whole(rows), whole(choices)).to(device);
    const auto noisy = logits.add(noise);
    const auto places = noisy.argmax(1).to(at::kCPU).contiguous();
    const auto* const place = places.data_ptr<std::int64_t>();
    std::vector<float> active(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      if (!space.is_active(std::as_const(drawn.designs)[i], gene)) continue;
      active[i] = 1;
      drawn.designs[i][gene] = static_cast<Choice>(place[i]);
    }
    const auto mask = tensor_of(active, whole(rows), 1).to(device);
    const auto hard = taken_choices(space, drawn.designs, gene).to(device);
    const auto soft = at::softmax(noisy.div(temperature), 1).mul(mask);
    const auto taken = hard.sub(soft.detach()).add(soft);
    const auto logs = at::log_softmax(logits, 1);
    const auto said = logs.mul(hard).sum(1);
    const auto entropy = logs.exp().mul(logs).mul(mask).sum().neg().div(static_cast<double>(rows));
    drawn.log_probability = gene == 0 ? said : drawn.log_probability.add(said);
    drawn.entropy = gene == 0 ? entropy : drawn.entropy.add(entropy);
    state = decoder.after(gene, state, hard);  // later genes see what was drawn
    drawn.taken.push_back(taken);
  }
  return drawn;
}

/// The columns that networks over designs take, with the gradients of the choices behind them. A
/// column of a dead slot is 0 in "live", whatever its choice.
at::Tensor columns_of(const learned::DesignColumns& columns, const Drawn& drawn) {
  const auto& space = columns.space();
  const auto rows = drawn.taken[0].size(0);
  const auto options = drawn.taken[0].options();
  std::vector<at::Tensor> parts;
  for (const auto& slot : space.slots()) {
    auto joint = drawn.taken[slot.genes[0]];
    for (std::size_t i = 1; i < slot.genes.size(); ++i)
      joint = joint.unsqueeze(2).mul(drawn.taken[slot.genes[i]].unsqueeze(1)).reshape({rows, -1});
    parts.push_back(joint);
  }
  const std::size_t slots = parts.size();
  parts.push_back(at::ones({rows, 1}, options));
  if (columns.count() == static_cast<std::size_t>(at::cat(parts, 1).size(1))) {
    return at::cat(parts, 1);
  }
  std::vector<float> alive(static_cast<std::size_t>(rows) * slots);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    const auto live = space.live_slots(drawn.designs[i]);
    for (std::size_t slot = 0; slot < slots; ++slot) alive[i * slots + slot] = live[slot] ? 1 : 0;
  }
  const auto mask = tensor_of(alive, rows, whole(slots)).to(options.device());
  for (std::size_t slot = 0; slot < slots; ++slot)
    parts.push_back(parts[slot].mul(mask.narrow(1, whole(slot), 1)));
  parts.push_back(at::ones({rows, 1}, options));
  return at::cat(parts, 1);
}

/// The performance networks as they judge drawn designs.
class FrozenModel {
 public:
  FrozenModel(const learned::Model& model, Compute compute) : model_(model) {
    for (const auto& cost : model.parts().costs) {
      costs_.emplace_back();
      for (const auto& member : cost.members)
        costs_.back().push_back(frozen_network(member.network, compute));
    }
    for (const auto& member : model.parts().accuracy.members)
      accuracy_.push_back(frozen_network(member, compute));
  }

  /// The predicted objective of each row: equation 10, and a penalty for broken limits.
  at::Tensor losses(const TaskBatch& tasks, const at::Tensor& designs, double penalty) const {
    const auto number = mean_of(accuracy_, designs).squeeze(1).clamp(-3.0, 20.0);
    const auto& accuracy = model_.parts().accuracy;
    const auto points = number.sinh().mul(accuracy.scale / accuracy.spread90);
    auto weighted = points.neg();
    auto limited = number.neg();
    auto weights = at::ones({number.size(0)}, number.options());
    for (std::size_t c = 0; c < costs_.size(); ++c) {
      const auto column = whole(c);
      const double scale = model_.parts().costs[c].scale;
      const auto log_cost = mean_of(costs_[c], designs).mul(tasks.devices).sum(1).mul(scale);
      const auto weight = tasks.weights.select(1, column);
      const auto relative = log_cost.sub(tasks.typical.select(1, column)).clamp(-5.0, 5.0).exp();
      weighted = weighted.add(weight.mul(relative));
      weights = weights.add(weight);
      const auto over = at::relu(log_cost.sub(tasks.limits.select(1, column)).div(scale))
                            .mul(tasks.limited.select(1, column));
      limited = limited.add(over.add(over.sign().detach().mul(0.05)).mul(penalty));
    }
    const auto is_weighted = tasks.weighted.squeeze(1);
    return is_weighted.mul(weighted.div(weights).mul(3.0))
        .add(limited.mul(is_weighted.neg().add(1.0)));
  }

 private:
  static at::Tensor mean_of(const std::vector<TorchDesignNetwork>& members,
                            const at::Tensor& designs) {
    at::Tensor sum;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto one = members[i](designs);
      sum = i == 0 ? one : sum.add(one);
    }
    return sum.div(static_cast<double>(members.size()));
  }

  const learned::Model& model_;
  std::vector<std::vector<TorchDesignNetwork>> costs_;
  std::vector<TorchDesignNetwork> accuracy_;
};

/// How training goes on from its beginning (0) to its end (1).
struct Phase {
  double temperature;
  double penalty;
  double entropy;
};

Phase phase_at(double share) {
  const auto between = [share](double first, double last) {
    return first * std::pow(last / first, share);
  };
  return {.temperature = between(2.0, 0.3),
          .penalty = between(1.0, 20.0),
          .entropy = between(0.2, 0.002)};
}

/// Each task is drawn for several times: how good a draw is compared with the others of its task
/// says whether it should become likelier, without the error of straight-through gradients.
constexpr std::size_t kDraws = 4;

at::Tensor advantage(const at::Tensor& losses) {
  const auto grouped = losses.detach().view({-1, static_cast<std::int64_t>(kDraws)});
  const double others = static_cast<double>(kDraws) / static_cast<double>(kDraws - 1);
  return grouped.sub(grouped.mean(1, /*keepdim=*/true)).mul(others).reshape({-1});
}

bool learn_through(TorchDecoder& decoder, const OptimizerTasks& tasks,
                   const OptimizerFitOptions& options, core::Random random,
                   const FitProgress& progress) {
  constexpr double kStraightThrough = 0.3;
  const auto& model = *tasks.model;
  const TaskTable table(tasks, options.compute);
  const FrozenModel frozen(model, options.compute);
  auto optimizer = decoder.optimizer(options.decay);
  for (std::size_t step = 0; step < options.steps; ++step) {
    const auto phase = phase_at(static_cast<double>(step) / static_cast<double>(options.steps));
    std::vector<std::size_t> rows;
    for (const auto row : draw_rows(table.size(), options.batch, random))
      rows.insert(rows.end(), kDraws, row);
    const auto batch = table.batch(rows);
    const auto drawn = draw(decoder, model.space(), batch.inputs, phase.temperature, random);
    const auto losses = frozen.losses(batch, columns_of(model.columns(), drawn), phase.penalty);
    losses.mul(kStraightThrough)
        .add(advantage(losses).mul(drawn.log_probability))
        .mean()
        .sub(drawn.entropy.mul(phase.entropy))
        .backward();
    optimizer.step(rate_at(options.rate, step, options.steps));
    if (!goes_on(step, options.steps, progress)) return false;
  }
  return true;
}

tl::unexpected<Error> interrupted() {
  return fail(ErrorCode::cancelled, "training was interrupted");
}

}  // namespace

Result<learned::OptimizerNetwork::Parts> fit_optimizer_to_best(const OptimizerLessons& lessons,
                                                               const OptimizerFitOptions& options,
                                                               const core::Random& random,
                                                               const FitProgress& progress) {
  return guarded([&]() -> Result<learned::OptimizerNetwork::Parts> {
    TorchDecoder decoder(*lessons.space, lessons.inputs, options, random.split("weights"));
    if (!learn_best(decoder, lessons, options, random.split("order"), progress))
      return interrupted();
    return decoder.parts();
  });
}

Result<learned::OptimizerNetwork::Parts> fit_optimizer_through(const OptimizerTasks& tasks,
                                                               const OptimizerFitOptions& options,
                                                               const core::Random& random,
                                                               const FitProgress& progress) {
  return guarded([&]() -> Result<learned::OptimizerNetwork::Parts> {
    TorchDecoder decoder(tasks.model->space(), tasks.model->optimizer_inputs(), options,
                         random.split("weights"));
    if (!learn_through(decoder, tasks, options, random.split("draws"), progress))
      return interrupted();
    return decoder.parts();
  });
}

}  // namespace fleetfit::train
