#include "study/optuna_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "fleetfit/core/json.h"

namespace fleetfit::study {
namespace {

using nlohmann::json;
using store::OptunaDistribution;
using store::OptunaParameter;
using store::OptunaState;
using store::OptunaStudy;
using store::OptunaTrial;

// More steps than this are a range.
constexpr double kMostSteps = 1000;

// A choice as study files can have it: neither nothing nor lists.
json as_value(const std::string& choice) {
  auto parsed = core::parse_json(choice, "choice");
  if (!parsed) return choice;
  if (parsed->is_null()) return "None";
  if (parsed->is_structured()) return choice;
  return std::move(*parsed);
}

json as_number(double value, bool integer) {
  if (integer) return static_cast<std::int64_t>(std::llround(value));
  return value;
}

// 0.3 rather than 0.30000000000000004, which three steps of 0.1 add up to.
double in_few_digits(double value) {
  return std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr);
}

// JSON's texts of numbers and strings are YAML, too.
std::string yaml(const json& value) { return core::format_json_line(value); }

std::string yaml_list(const std::vector<json>& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : ", ") + yaml(value);
  return "[" + text + "]";
}

const OptunaParameter* find_in(const OptunaTrial& trial, const std::string& name) {
  const auto found = std::ranges::find(trial.parameters, name, &OptunaParameter::name);
  return found == trial.parameters.end() ? nullptr : &*found;
}

}  // namespace

Result<OptunaSpace> OptunaSpace::of(const OptunaStudy& study) {
  OptunaSpace space;
  space.study_ = &study;
  for (const auto& trial : study.trials)
    for (const auto& parameter : trial.parameters) FLEETFIT_TRY(space.add(study, parameter));
  if (space.parameters_.empty())
    return refuse(fmt::format("study '{}': no trial has parameters", study.name));
  space.list_steps();
  space.find_conditions(study);
  return space;
}

std::optional<std::size_t> OptunaSpace::find(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &Parameter::name);
  if (found == parameters_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - parameters_.begin());
}

Status OptunaSpace::add(const OptunaStudy& study, const OptunaParameter& parameter) {
  const auto& distribution = study.distributions[parameter.distribution];
  const bool is_choice = distribution.kind == OptunaDistribution::Kind::categorical;
  const auto index = find(parameter.name);
  if (!index) parameters_.push_back({.name = parameter.name, .is_choice = is_choice});
  auto& known = index ? parameters_[*index] : parameters_.back();
  if (known.is_choice != is_choice)
    return refuse(
        fmt::format("study '{}': parameter '{}' is a choice in some trials and a number in "
                    "others",
                    study.name, parameter.name));
  if (is_choice) {
    add_choices(known, distribution);
  } else {
    add_range(known, distribution, !index);
  }
  return {};
}

void OptunaSpace::add_choices(Parameter& known, const OptunaDistribution& distribution) {
  for (const auto& choice : distribution.choices) {
    auto value = as_value(choice);
    if (std::ranges::find(known.values, value) == known.values.end())
      known.values.push_back(std::move(value));
  }
}

// Trials may have had different ranges: the new one holds all of them.
void OptunaSpace::add_range(Parameter& known, const OptunaDistribution& distribution, bool is_new) {
  const bool same_steps =
      is_new || (known.step == distribution.step && known.low == distribution.low);
  known.low = is_new ? distribution.low : std::min(known.low, distribution.low);
  known.high = is_new ? distribution.high : std::max(known.high, distribution.high);
  known.integer = known.integer && distribution.kind == OptunaDistribution::Kind::integer;
  known.log = known.log && distribution.log;
  known.step = same_steps ? distribution.step : std::nullopt;
}

// Study files know no steps: few of them become values to choose from.
void OptunaSpace::list_steps() {
  for (auto& parameter : parameters_) {
    if (parameter.is_choice) continue;
    const bool is_plain = !parameter.step || (parameter.integer && *parameter.step == 1);
    if (is_plain && parameter.low < parameter.high) continue;
    const double step = parameter.step.value_or(1);
    const double steps = std::floor((parameter.high - parameter.low) / step + 1e-9);
    if (steps >= kMostSteps || (parameter.log && steps > 0)) continue;
    for (int i = 0; i <= static_cast<int>(steps); ++i)
      parameter.values.push_back(
          as_number(in_few_digits(parameter.low + i * step), parameter.integer));
  }
}

void OptunaSpace::find_conditions(const OptunaStudy& study) {
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].when = condition_of(study, i);
  // What a parameter depends on stands before it.
  std::vector<std::size_t> order;
  for (const bool conditional : {false, true})
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].when.has_value() == conditional) order.push_back(i);
  std::vector<Parameter> ordered;
  for (const auto i : order) ordered.push_back(parameters_[i]);
  for (auto& parameter : ordered)
    if (parameter.when)
      parameter.when->parameter = static_cast<std::size_t>(
          std::ranges::find(order, parameter.when->parameter) - order.begin());
  parameters_ = std::move(ordered);
}

// A choice that all complete trials have, and that separates those with the parameter from those
// without.
std::optional<OptunaSpace::Condition> OptunaSpace::condition_of(const OptunaStudy& study,
                                                                std::size_t parameter) const {
  const auto& name = parameters_[parameter].name;
  std::vector<const OptunaTrial*> complete;
  for (const auto& trial : study.trials)
    if (trial.state == OptunaState::complete) complete.push_back(&trial);
  const auto has = [](const std::string& wanted) {
    return [&wanted](const OptunaTrial* trial) { return find_in(*trial, wanted) != nullptr; };
  };
  if (std::ranges::all_of(complete, has(name))) return std::nullopt;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& other = parameters_[i];
    if (i == parameter || !other.is_choice || !std::ranges::all_of(complete, has(other.name)))
      continue;
    std::set<json> with;
    std::set<json> without;
    for (const auto* trial : complete)
      (find_in(*trial, name) != nullptr ? with : without)
          .insert(value_of(*find_in(*trial, other.name)));
    const bool tells_apart =
        std::ranges::none_of(with, [&](const json& value) { return without.contains(value); });
    if (tells_apart && !with.empty())
      return Condition{.parameter = i, .values = {with.begin(), with.end()}};
  }
  return std::nullopt;
}

json OptunaSpace::value_of(const OptunaParameter& parameter) const {
  const auto& distribution = study_->distributions[parameter.distribution];
  if (distribution.kind == OptunaDistribution::Kind::categorical)
    return as_value(distribution.choices[static_cast<std::size_t>(parameter.value)]);
  const auto& known = parameters_[*find(parameter.name)];
  if (known.values.empty()) return as_number(parameter.value, known.integer);
  const double index = std::round((parameter.value - known.low) / known.step.value_or(1));
  const auto last = static_cast<double>(known.values.size() - 1);
  return known.values[static_cast<std::size_t>(std::clamp(index, 0.0, last))];
}

nlohmann::ordered_json OptunaSpace::values(const OptunaTrial& trial) const {
  auto object = nlohmann::ordered_json::object();
  for (const auto& parameter : trial.parameters) object[parameter.name] = value_of(parameter);
  return object;
}

std::string OptunaSpace::line(const Parameter& parameter) const {
  std::string text;
  if (!parameter.values.empty()) {
    text = fmt::format("values: {}", yaml_list(parameter.values));
  } else {
    text = fmt::format("range: {}", yaml_list({as_number(parameter.low, parameter.integer),
                                               as_number(parameter.high, parameter.integer)}));
    if (parameter.integer) text += ", integer: true";
    if (parameter.log) text += ", log: true";
  }
  if (parameter.when)
    text += fmt::format(", when: {{{}: {}}}", yaml(parameters_[parameter.when->parameter].name),
                        yaml_list(parameter.when->values));
  return fmt::format("{}: {{{}}}\n", yaml(parameter.name), text);
}

std::string OptunaSpace::definition(const std::string& indent) const {
  std::string text;
  for (const auto& parameter : parameters_) text += indent + line(parameter);
  return text;
}

}  // namespace fleetfit::study
