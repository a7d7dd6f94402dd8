#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "fleetfit/learned/model.h"

namespace fleetfit::learned {
namespace {

constexpr double kMostCost = 1e15;
constexpr double kMostWeight = 1e6;

bool is_weighted(const Goal& goal) { return !goal.weights.empty(); }

}  // namespace

Status check(const Goal& goal, const Model& model) {
  const auto& costs = model.parts().costs;
  const auto wrong = [&](std::size_t cost, std::string_view what) {
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", costs[cost].name, what));
  };
  const auto& numbers = is_weighted(goal) ? goal.weights : goal.limits;
  if (numbers.size() != costs.size()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} {} were given, but the model has {} costs", numbers.size(),
                            is_weighted(goal) ? "weights" : "limits", costs.size()));
  }
  if (!(goal.most_risk > 0 && goal.most_risk < 1)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a risk of {} is not between 0 and 1", goal.most_risk));
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
