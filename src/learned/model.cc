#include "fleetfit/learned/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "fleetfit/space/design_index.h"

namespace fleetfit::learned {
namespace {

constexpr double kLeastShare = 1e-9;  // of the scale, so that sinh stays finite
constexpr double kMostNumber = 20;    // of accuracy's network: sinh of more is absurd
constexpr double kMostLog = 100;      // of a cost

double ensemble_mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Deviation of one member.
double ensemble_spread(std::span<const double> values, double mean) {
  if (values.size() < 2) return 0;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

/// The outputs of a cost's network on a device.
double number_on(std::span<const float> outputs, std::span<const float> inputs) {
  float sum = outputs[0];
  for (std::size_t i = 0; i < inputs.size(); ++i) sum += outputs[i + 1] * inputs[i];
  return sum;
}

Status check_risk(const Risk& risk) {
  if (!(risk.price >= 0) || std::isinf(risk.price)) return refuse("the price of risk is none");
  if (risk.excess.size() == 1) return refuse("one quantile of the excess is too few");
  if (!std::ranges::all_of(risk.excess, [](double one) { return std::isfinite(one); }))
    return refuse("a quantile of the excess is not finite");
  if (!std::ranges::is_sorted(risk.excess)) return refuse("quantiles of the excess do not rise");
  return {};
}

Status check_cost(const CostModel& cost, std::size_t features) {
  const auto wrong = [&](std::string_view what) {
    return refuse(fmt::format("cost {}: {}", cost.name, what));
  };
  for (const double number : {cost.offset, cost.scale, cost.margin, cost.noise, cost.usual_spread})
    if (!std::isfinite(number)) return wrong("a number is not finite");
  if (!(cost.scale > 0)) return wrong("the scale is not positive");
  if (!(cost.margin >= 0)) return wrong("the margin is negative");
  if (!(cost.noise >= 0)) return wrong("the noise is negative");
  if (const auto good = check_risk(cost.risk); !good) return wrong(good.error().message);
  if (!(cost.usual_spread > 0)) return wrong("the usual spread is not positive");
  if (cost.members.empty()) return wrong("there is no network");
  for (const auto& member : cost.members) {
    if (member.network.outputs() != features + 1) return wrong("a network is of other features");
    if (member.typical.size() != features + 1) return wrong("typical: not one for each output");
    if (!std::ranges::all_of(member.typical, [](float one) { return std::isfinite(one); }))
      return wrong("typical: a number is not finite");
  }
  return {};
}

Status check_accuracy(const AccuracyModel& accuracy) {
  const auto wrong = [](std::string_view what) {
    return refuse(fmt::format("accuracy: {}", what));
  };
  if (accuracy.members.empty()) return wrong("there is no network");
  if (!std::isfinite(accuracy.centre)) return wrong("the centre is not finite");
  for (const double number : {accuracy.scale, accuracy.spread90})
    if (!(number > kLeastShare) || !std::isfinite(number)) return wrong("a scale is not positive");
  for (const auto& member : accuracy.members)
    if (member.outputs() != 1) return wrong("a network has several outputs");
  return {};
}

constexpr double kMostCost = 1e15;
constexpr double kMostWeight = 1e6;

bool is_weighted(const Goal& goal) { return !goal.weights.empty(); }

}  // namespace

struct Model::Remembered {
  space::DesignIndex index;
  std::vector<float> rows;
};

Model::Model(Parts parts) : parts_(std::move(parts)), columns_(*parts_.space), row_size_(2) {
  for (const auto& cost : parts_.costs)
    row_size_ += cost.members.size() * (parts_.device.size() + 1);
}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

double AccuracyModel::of(double number) const {
  return centre + scale * std::sinh(std::clamp(number, -kMostNumber, kMostNumber));
}

Result<Model> Model::make(Parts parts) {
  if (parts.costs.empty() || parts.costs.size() > kMostCosts)
    return refuse(fmt::format("costs: there are {}, expected 1 or 2", parts.costs.size()));
  for (const auto& cost : parts.costs) FLEETFIT_TRY(check_cost(cost, parts.device.size()));
  FLEETFIT_TRY(check_accuracy(parts.accuracy));
  for (const auto& optimizer : parts.optimizers)
    if (optimizer.inputs() != optimizer_inputs(parts))
      return refuse("optimizers: a network is of other features");
  return Model(std::move(parts));
}

std::size_t Model::optimizer_inputs(const Parts& parts) {
  return parts.device.size() + 1 + 2 * parts.costs.size();
}

void Model::describe(space::DesignBatch designs, std::span<float> rows) const {
  assert(rows.size() == designs.size() * row_size_);
  std::vector<std::uint32_t> room(columns_.most_taken());
  std::vector<float> scratch;
  std::vector<double> numbers(parts_.accuracy.members.size());
  for (std::size_t i = 0; i < designs.size(); ++i) {
    auto row = rows.subspan(i * row_size_, row_size_);
    if (remembered_) {
      const auto place = remembered_->index.find(designs[i]);
      assert(place);
      std::ranges::copy(std::span(remembered_->rows).subspan(*place * row_size_, row_size_),
                        row.begin());
      continue;
    }
    const auto taken = std::span(room).first(columns_.taken(designs[i], room));
    for (std::size_t m = 0; m < numbers.size(); ++m) {
      float number = 0;
      parts_.accuracy.members[m].apply(taken, std::span(&number, 1), scratch);
      numbers[m] = parts_.accuracy.of(number);
    }
    const double mean = ensemble_mean(numbers);
    row[0] = static_cast<float>(mean);
    row[1] = static_cast<float>(ensemble_spread(numbers, mean));
    std::size_t at = 2;
    for (const auto& cost : parts_.costs) {
      for (const auto& member : cost.members) {
        member.network.apply(taken, row.subspan(at, member.network.outputs()), scratch);
        at += member.network.outputs();
      }
    }
  }
}

void Model::remember_designs(core::ThreadPool& pool, std::uint64_t most) {
  const auto size = space().size().exact();
  if (remembered_ || !size || *size > most) return;
  auto all =
      std::make_unique<Remembered>(Remembered{.index = space::DesignIndex(space()), .rows = {}});
  std::vector<space::Choice> design(space().genes().size());
  do {
    all->index.add(design);
  } while (space().next(design));
  all->rows.resize(all->index.size() * row_size_);
  constexpr std::size_t kChunk = 512;
  const auto designs = all->index.designs().batch();
  pool.parallel_chunks(designs.size(), kChunk, [&](std::size_t begin, std::size_t end) {
    describe(designs.part(begin, end - begin),
             std::span(all->rows).subspan(begin * row_size_, (end - begin) * row_size_));
  });
  remembered_ = std::move(all);
}

DeviceJudge::DeviceJudge(const Model& model, DeviceVector device)
    : model_(&model), device_(std::move(device)) {
  const auto& costs = model.parts().costs;
  for (std::size_t cost = 0; cost < costs.size(); ++cost) {
    std::vector<double> numbers;
    for (const auto& member : costs[cost].members)
      numbers.push_back(number_on(member.typical, device_.inputs));
    const double mean = ensemble_mean(numbers);
    typical_[cost] = device_.level + costs[cost].offset + costs[cost].scale * mean;
    typical_spread_[cost] = costs[cost].scale * ensemble_spread(numbers, mean);
  }
}

Judged DeviceJudge::judge_row(std::span<const float> row) const {
  Judged judged{.accuracy = row[0], .accuracy_spread = row[1]};
  const auto& costs = model_->parts().costs;
  const std::size_t outputs = device_.inputs.size() + 1;
  std::size_t at = 2;
  for (std::size_t cost = 0; cost < costs.size(); ++cost) {
    double sum = 0;
    double squares = 0;
    const std::size_t members = costs[cost].members.size();
    for (std::size_t m = 0; m < members; ++m) {
      const double number = number_on(row.subspan(at, outputs), device_.inputs);
      sum += number;
      squares += number * number;
      at += outputs;
    }
    const auto count = static_cast<double>(members);
    const double mean = sum / count;
    const double variance =
        members < 2 ? 0 : std::max(squares / count - mean * mean, 0.0) * count / (count - 1);
    judged.log_cost[cost] = std::clamp(
        device_.level + costs[cost].offset + costs[cost].scale * mean, -kMostLog, kMostLog);
    judged.spread[cost] = costs[cost].scale * std::sqrt(variance);
  }
  return judged;
}

void DeviceJudge::judge(space::DesignBatch designs, std::span<Judged> out) const {
  assert(out.size() == designs.size());
  constexpr std::size_t kChunk = 64;
  const std::size_t size = model_->row_size();
  std::vector<float> rows(std::min(kChunk, designs.size()) * size);
  for (std::size_t first = 0; first < designs.size(); first += kChunk) {
    const auto part = designs.part(first, std::min(kChunk, designs.size() - first));
    const auto described = std::span(rows).first(part.size() * size);
    model_->describe(part, described);
    for (std::size_t i = 0; i < part.size(); ++i)
      out[first + i] = judge_row(described.subspan(i * size, size));
  }
}

double DeviceJudge::whole_spread(const Judged& judged, std::size_t cost) const {
  return std::hypot(judged.spread[cost], model_->parts().costs[cost].noise);
}

double DeviceJudge::safe(const Judged& judged, std::size_t cost) const {
  constexpr double kMost = 1;  // e times the predicted cost
  const double margin = model_->parts().costs[cost].margin * whole_spread(judged, cost);
  return judged.log_cost[cost] + std::min(margin, kMost);
}

double DeviceJudge::risk(const Judged& judged, std::size_t cost, double log_limit) const {
  const auto& risk = model_->parts().costs[cost].risk;
  if (!risk.is_known()) return safe(judged, cost) > log_limit ? 1 : 0;
  return risk.chance((log_limit - judged.log_cost[cost]) / whole_spread(judged, cost));
}

double DeviceJudge::bound(const Judged& judged, std::size_t cost, double most_risk) const {
  const auto& risk = model_->parts().costs[cost].risk;
  if (!risk.is_known()) return safe(judged, cost);
  return judged.log_cost[cost] + risk.room(most_risk) * whole_spread(judged, cost);
}

Status check(const Goal& goal, const Model& model) {
  const auto& costs = model.parts().costs;
  const auto wrong = [&](std::size_t cost, std::string_view what) {
    return refuse(fmt::format("{}: {}", costs[cost].name, what));
  };
  const auto& numbers = is_weighted(goal) ? goal.weights : goal.limits;
  if (numbers.size() != costs.size()) {
    return refuse(fmt::format("{} {} were given, but the model has {} costs", numbers.size(),
                              is_weighted(goal) ? "weights" : "limits", costs.size()));
  }
  if (!(goal.most_risk > 0 && goal.most_risk < 1)) {
    return refuse(fmt::format("a risk of {} is not between 0 and 1", goal.most_risk));
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (is_weighted(goal)) {
      if (!(numbers[i] >= 0 && numbers[i] <= kMostWeight))
        return wrong(i, fmt::format("a weight of {} is none", numbers[i]));
    } else if (!(numbers[i] > 0) || (std::isfinite(numbers[i]) && numbers[i] > kMostCost)) {
      return wrong(i, fmt::format("a limit of {} is none", numbers[i]));
    }
  }
  return {};
}

std::vector<float> optimizer_inputs(const DeviceJudge& judge, const Goal& goal) {
  constexpr double kFarthest = 6;
  constexpr double kLeastWeight = 1e-3;
  auto inputs = judge.device().inputs;
  for (float& input : inputs) input = std::clamp(input, -3.0F, 3.0F);
  inputs.push_back(is_weighted(goal) ? 1.0F : 0.0F);
  const std::size_t costs = judge.model().parts().costs.size();
  for (std::size_t i = 0; i < costs; ++i) {
    bool is_there = false;
    double value = 0;
    if (is_weighted(goal)) {
      is_there = goal.weights[i] > 0;
      value = std::log(std::max(goal.weights[i], kLeastWeight)) / 2;
    } else if (std::isfinite(goal.limits[i])) {
      is_there = true;
      value = 2 * (std::log(goal.limits[i]) - judge.typical(i));
    }
    inputs.push_back(is_there ? 1.0F : 0.0F);
    inputs.push_back(static_cast<float>(is_there ? std::clamp(value, -kFarthest, kFarthest) : 0));
  }
  return inputs;
}

Fitness fitness(const DeviceJudge& judge, const Goal& goal, const Judged& judged) {
  Fitness result{.violation = 0, .loss = -judged.accuracy};
  if (is_weighted(goal)) {
    result.loss /= judge.model().parts().accuracy.spread90;
    for (std::size_t i = 0; i < goal.weights.size(); ++i)
      result.loss += goal.weights[i] * std::exp(judged.log_cost[i] - judge.typical(i));
    return result;
  }
  for (std::size_t i = 0; i < goal.limits.size(); ++i) {
    if (!std::isfinite(goal.limits[i])) continue;
    const double limit = std::log(goal.limits[i]);
    result.violation += std::max(judge.bound(judged, i, goal.most_risk) - limit, 0.0);
    result.loss += judge.model().parts().costs[i].risk.price * judge.risk(judged, i, limit);
  }
  return result;
}

double Risk::chance(double room) const {
  assert(is_known());
  if (room < excess.front()) return 1;
  const auto above = std::ranges::upper_bound(excess, room);
  if (above == excess.end()) return 0;
  const double low = *(above - 1);
  const double below = static_cast<double>(above - excess.begin()) - 1;
  const double share =
      (below + (room - low) / (*above - low)) / static_cast<double>(excess.size() - 1);
  return 1 - share;
}

double Risk::room(double chance) const {
  assert(is_known());
  const double place = (1 - std::clamp(chance, 0.0, 1.0)) * static_cast<double>(excess.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), excess.size() - 2);
  return std::lerp(excess[below], excess[below + 1], place - static_cast<double>(below));
}

}  // namespace fleetfit::learned
