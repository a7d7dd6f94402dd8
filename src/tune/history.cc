#include "fleetfit/tune/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fleetfit::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool needs_inference(const Study& study, Metric metric) {
  return is_of_inference(metric) || (is_ratio(metric) && !study.algorithm.hierarchical);
}

// Users of a server feel how long an answer takes, not how long its batch runs.
double latency_ms(const Study& study, const Inference& inference) {
  const ScenarioKind kind = study.inference ? study.inference->scenario.kind : ScenarioKind::single;
  const bool waits = kind == ScenarioKind::server || kind == ScenarioKind::multistream;
  return waits ? inference.response_ms : inference.latency_ms;
}

std::optional<double> on_device(const Study& study, Metric metric, const Inference& inference) {
  switch (metric) {
    case Metric::throughput:
      return inference.throughput;
    case Metric::energy:
      return inference.energy_mj;
    default:
      return latency_ms(study, inference);
  }
}

/// On one device, or the mean over all.
std::optional<double> of_inference(const Study& study, Metric metric, std::string_view device,
                                   const std::vector<Inference>& known) {
  double sum = 0;
  double count = 0;
  for (const Inference& inference : known) {
    if (!device.empty() && inference.device != device) continue;
    const auto value = on_device(study, metric, inference);
    if (!value) return std::nullopt;
    sum += *value;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::optional<double> inference_share(const Study& study, const Trial& trial, Metric metric) {
  if (study.algorithm.hierarchical) return 0;
  if (!trial.inference) return std::nullopt;
  const auto value = of_inference(study, metric, "", *trial.inference);
  if (!value) return std::nullopt;
  return *value / 1000;  // ms and mJ to s and J
}

std::optional<double> ratio(std::optional<double> training, std::optional<double> inference,
                            double accuracy) {
  if (!training || !inference) return std::nullopt;
  return accuracy > 0 ? (*training + *inference) / accuracy : kInfinity;
}

std::optional<double> other_number(const LevelResult& result, const std::string& name) {
  const auto found = result.other.find(name);
  if (found == result.other.end()) return std::nullopt;
  return found->second;
}

std::optional<double> number_of(const Study& study, const Goal& goal, const Trial& trial,
                                const LevelResult& result) {
  switch (goal.metric) {
    case Metric::accuracy:
      return result.accuracy;
    case Metric::loss:
      return result.loss;
    case Metric::latency:
    case Metric::throughput:
    case Metric::energy:
      if (!trial.inference) return std::nullopt;
      return of_inference(study, goal.metric, goal.device, *trial.inference);
    case Metric::training_time:
      return result.training_s;
    case Metric::training_energy:
      return result.training_j;
    case Metric::ratio_of_time:
      return ratio(result.training_s, inference_share(study, trial, Metric::latency),
                   result.accuracy);
    case Metric::ratio_of_energy:
      return ratio(result.training_j, inference_share(study, trial, Metric::energy),
                   result.accuracy);
    case Metric::other:
      return other_number(result, goal.name);
  }
  return std::nullopt;
}

std::string_view name_of(const Goal& goal) {
  if (goal.metric == Metric::other) return goal.name;
  constexpr std::array<std::string_view, 9> kNames = {"accuracy",
                                                      "loss",
                                                      "latency of inference",
                                                      "throughput of inference",
                                                      "energy of inference",
                                                      "training time",
                                                      "energy of training",
                                                      "time",
                                                      "energy of training or inference"};
  return kNames[static_cast<std::size_t>(goal.metric)];
}

double relative_excess(double value, double limit) {
  return value > limit ? (value - limit) / limit : 0;
}

const Inference* find_device(const std::vector<Inference>& known, std::string_view device) {
  const auto found = std::ranges::find(known, device, &Inference::device);
  return found == known.end() ? nullptr : &*found;
}

// Nothing if it is not known.
std::optional<double> limited_number(const Study& study, const Constraints::PerDevice& limit,
                                     const std::vector<Inference>& known) {
  const Inference* inference = find_device(known, limit.device);
  return inference == nullptr ? std::nullopt : on_device(study, limit.metric, *inference);
}

}  // namespace

std::optional<std::vector<double>> objective_values(const Study& study, const Trial& trial,
                                                    const LevelResult& result) {
  std::vector<double> values;
  for (const Goal& goal : study.objective.goals) {
    const auto number = number_of(study, goal, trial, result);
    if (!number) return std::nullopt;
    values.push_back(goal.maximize ? -*number : *number);
  }
  if (!study.objective.weighted_sum) return values;
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += study.objective.goals[i].weight * values[i];
  }
  return std::vector<double>{std::isnan(sum) ? kInfinity : sum};
}

std::optional<std::string> lacking_number(const Study& study, const Trial& trial,
                                          const LevelResult& result) {
  for (const Goal& goal : study.objective.goals) {
    if (needs_inference(study, goal.metric) && !trial.inference) continue;
    if (number_of(study, goal, trial, result)) continue;
    return fmt::format("the result has no {}, which the objective needs", name_of(goal));
  }
  return std::nullopt;
}

bool needs_inference(const Study& study) {
  return !study.constraints.devices.empty() ||
         std::ranges::any_of(study.objective.goals,
                             [&](const Goal& goal) { return needs_inference(study, goal.metric); });
}

double device_violation(const Study& study, const std::vector<Inference>& known) {
  double sum = 0;
  for (const auto& limit : study.constraints.devices) {
    sum += relative_excess(limited_number(study, limit, known).value_or(0), limit.limit);
  }
  return sum;
}

double violation(const Study& study, const Trial& trial, const LevelResult& result) {
  double sum = trial.inference ? device_violation(study, *trial.inference) : 0;
  if (const auto least = study.constraints.accuracy; least && result.accuracy < *least) {
    sum += (*least - result.accuracy) / *least;
  }
  return sum;
}

std::optional<std::string> broken_limit(const Study& study, const std::vector<Inference>& known) {
  for (const auto& limit : study.constraints.devices) {
    const auto number = limited_number(study, limit, known);
    if (!number || !(*number > limit.limit)) continue;
    const bool energy = limit.metric == Metric::energy;
    const std::string_view unit = energy ? "mJ" : "ms";
    return fmt::format("{} on {}: {:.4g} {}, at most {:.4g} {}", energy ? "energy" : "latency",
                       limit.device, *number, unit, limit.limit, unit);
  }
  return std::nullopt;
}

}  // namespace fleetfit::tune
