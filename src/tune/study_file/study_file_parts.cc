#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fleetfit/core/names.h"
#include "fleetfit/workloads/workloads.h"
#include "tune/study_file/study_file.h"

namespace fleetfit::tune {
namespace {

Metric metric_named(std::string_view name) {
  using enum Metric;
  static constexpr core::Name kAll[] = {{accuracy, "accuracy"},
                                        {loss, "loss"},
                                        {latency, "latency"},
                                        {throughput, "throughput"},
                                        {energy, "energy"},
                                        {training_time, "training_time"},
                                        {training_energy, "training_energy"}};
  return static_cast<Metric>(
      core::Names{.all = kAll}.find(name).value_or(static_cast<std::int64_t>(other)));
}

Status check_device(const YamlView& view, const std::string& device, const Study& study) {
  if (!study.inference) return view.error("needs inference, which the study does not have");
  const auto& devices = study.inference->devices;
  if (std::ranges::find(devices, device) != devices.end()) return {};
  return view.error(
      fmt::format("{} is none of inference.devices: {}", device, fmt::join(devices, ", ")));
}

Status check_available(const YamlView& view, const Goal& goal, const Study& study) {
  if (!is_of_inference(goal.metric) && !is_ratio(goal.metric)) return {};
  if (!study.inference) return view.error("needs inference, which the study does not have");
  if (is_of_inference(goal.metric) && study.algorithm.hierarchical) {
    return view.error("is not known before the end with algorithm.mode: hierarchical");
  }
  return {};
}

Result<Metric> read_ratio_of(const YamlView& view) {
  return read_word<Metric>(view,
                           {{"time", Metric::ratio_of_time}, {"energy", Metric::ratio_of_energy}});
}

Result<Goal> read_ratio(const YamlView& view, const Study& study) {
  Goal goal;
  FLEETFIT_TRY(view.at("of"));
  FLEETFIT_TRY(first_error(
      {read_field(view, "of", goal.metric, read_ratio_of), check_available(view, goal, study)}));
  return goal;
}

// {maximize: accuracy}, {minimize: latency, device: local}.
Result<Goal> read_metric(const YamlView& view, const Study& study) {
  const auto maximize = view.find("maximize");
  const auto minimize = view.find("minimize");
  FLEETFIT_TRY(maximize);
  if (maximize->has_value() == minimize->has_value()) {
    return view.error("expected maximize: NAME, minimize: NAME or {kind: ratio, of: time}");
  }
  Goal goal = {.maximize = maximize->has_value()};
  const YamlView& field = *maximize ? **maximize : **minimize;
  FLEETFIT_ASSIGN(auto name, field.as_text());
  if (name.empty()) return field.error("is empty");
  goal.metric = metric_named(name);
  if (goal.metric == Metric::other) goal.name = std::move(name);
  const auto device = [&](const YamlView& at) -> Result<std::string> {
    if (!is_of_inference(goal.metric)) return at.error("only numbers of inference have a device");
    auto text = at.as_text();
    if (!text) return text;
    FLEETFIT_TRY(check_device(at, *text, study));
    return text;
  };
  FLEETFIT_TRY(first_error(
      {check_available(field, goal, study), read_field(view, "device", goal.device, device)}));
  return goal;
}

enum class Weighting { none, weights };

Result<Goal> read_goal(const YamlView& view, const Study& study, Weighting weighting) {
  const bool weights = weighting == Weighting::weights;
  FLEETFIT_ASSIGN(const auto kind, view.find("kind"));
  Result<Goal> goal = Goal{};
  if (kind) {
    FLEETFIT_TRY(read_word<bool>(*kind, {{"ratio", true}}));
    FLEETFIT_TRY(weights ? view.allow_only({"kind", "of", "weight"})
                         : view.allow_only({"kind", "of"}));
    goal = read_ratio(view, study);
  } else {
    FLEETFIT_TRY(weights ? view.allow_only({"maximize", "minimize", "device", "weight"})
                         : view.allow_only({"maximize", "minimize", "device"}));
    goal = read_metric(view, study);
  }
  if (!goal || !weights) return goal;
  FLEETFIT_TRY(read_field(view, "weight", goal->weight, read_positive));
  return goal;
}

bool same_number(const Goal& a, const Goal& b) {
  return a.metric == b.metric && a.name == b.name && a.device == b.device;
}

Result<std::vector<Goal>> read_goals(const YamlView& view, const Study& study,
                                     Weighting weighting) {
  constexpr std::size_t kMostGoals = 16;
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.empty()) return view.error("there has to be a goal at least");
  if (items.size() > kMostGoals) return view.error(fmt::format("more than {} goals", kMostGoals));
  std::vector<Goal> goals;
  for (const YamlView& item : items) {
    FLEETFIT_ASSIGN(auto goal, read_goal(item, study, weighting));
    if (std::ranges::any_of(goals, [&](const Goal& g) { return same_number(g, goal); })) {
      return item.error("the same number is a goal already");
    }
    goals.push_back(std::move(goal));
  }
  return goals;
}

Result<Objective> read_sum(const YamlView& view, const Study& study) {
  FLEETFIT_ASSIGN(const auto of, view.at("of"));
  FLEETFIT_TRY(view.allow_only({"kind", "of"}));
  FLEETFIT_ASSIGN(auto goals, read_goals(of, study, Weighting::weights));
  return Objective{.goals = std::move(goals), .weighted_sum = true};
}

bool is_sum(const YamlView& view) {
  const auto kind = view.find("kind");
  if (!kind || !*kind) return false;
  const auto text = (*kind)->as_text();
  return text && *text == "sum";
}

Result<std::optional<double>> read_accuracy_limit(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto limit, read_positive(view));
  if (limit > 1) return view.error(fmt::format("{} is more than 1", limit));
  return std::optional(limit);
}

using Limits = std::vector<Constraints::PerDevice>;

// {local: 20, phone: 35}, or 20 for all devices.
Status read_limits(const YamlView& view, Metric metric, const Study& study, Limits& limits) {
  if (!study.inference) return view.error("needs inference, which the study does not have");
  if (study.algorithm.hierarchical) {
    return view.error("is not known before the end with algorithm.mode: hierarchical");
  }
  if (!view.is_map()) {
    FLEETFIT_ASSIGN(const auto limit, read_positive(view));
    for (const std::string& device : study.inference->devices) {
      limits.push_back({device, metric, limit});
    }
    return {};
  }
  const auto members = view.members();
  for (const auto& [device, value] : *members) {
    FLEETFIT_TRY(check_device(value, device, study));
    FLEETFIT_ASSIGN(const auto limit, read_positive(value));
    limits.push_back({device, metric, limit});
  }
  return {};
}

}  // namespace

Result<Objective> read_objective(const YamlView& view, const Study& study) {
  if (view.is_list()) {
    FLEETFIT_ASSIGN(auto goals, read_goals(view, study, Weighting::none));
    return Objective{.goals = std::move(goals)};
  }
  if (is_sum(view)) return read_sum(view, study);
  FLEETFIT_ASSIGN(auto goal, read_goal(view, study, Weighting::none));
  return Objective{.goals = {std::move(goal)}};
}

Result<Constraints> read_constraints(const YamlView& view, const Study& study) {
  Constraints constraints;
  const auto limits_of = [&](Metric metric) {
    return [&, metric](const YamlView& field) -> Result<Limits> {
      Limits limits = constraints.devices;
      FLEETFIT_TRY(read_limits(field, metric, study, limits));
      return limits;
    };
  };
  FLEETFIT_TRY(
      first_error({view.allow_only({"accuracy", "latency_ms", "energy_mj"}),
                   read_field(view, "accuracy", constraints.accuracy, read_accuracy_limit),
                   read_field(view, "latency_ms", constraints.devices, limits_of(Metric::latency)),
                   read_field(view, "energy_mj", constraints.devices, limits_of(Metric::energy))}));
  return constraints;
}

namespace {

constexpr std::size_t kMostParameters = 1000;

Result<std::vector<Value>> read_values(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.empty()) return view.error("there has to be a value at least");
  std::vector<Value> values;
  for (const YamlView& item : items) {
    FLEETFIT_ASSIGN(auto value, item.as_scalar());
    values.push_back(std::move(value));
  }
  return values;
}

Result<std::pair<double, double>> read_ends(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto items, view.items());
  if (items.size() != 2) return view.error("expected two numbers: [lowest, highest]");
  FLEETFIT_ASSIGN(const auto low, items[0].as_number());
  FLEETFIT_ASSIGN(const auto high, items[1].as_number());
  return std::pair(low, high);
}

Result<std::vector<Value>> read_one_or_more_values(const YamlView& view) {
  if (view.is_list()) return read_values(view);
  FLEETFIT_ASSIGN(const auto value, view.as_scalar());
  return std::vector<Value>{value};
}

// {optimizer: [sgd]}, of a parameter that stands before.
Result<std::optional<Parameter::Condition>> read_condition(const YamlView& view,
                                                           std::span<const Parameter> before) {
  FLEETFIT_ASSIGN(const auto members, view.members());
  if (members.size() != 1) return view.error("expected one parameter with the values it must have");
  const auto& [name, value] = members.front();
  const auto parent = std::ranges::find(before, name, &Parameter::name);
  if (parent == before.end()) return value.error("there is no parameter of this name before");
  if (!parent->is_choice()) return value.error("is a range, and has no values to go by");
  FLEETFIT_ASSIGN(const auto values, read_one_or_more_values(value));
  Parameter::Condition condition = {.parameter = static_cast<std::size_t>(parent - before.begin())};
  for (const Value& wanted : values) {
    const auto found = find_value(*parent, wanted);
    if (!found) return value.error("is none of the parameter's values");
    condition.choices.push_back(*found);
  }
  std::ranges::sort(condition.choices);
  return condition;
}

bool increasing(const std::vector<Value>& values) {
  double last = -std::numeric_limits<double>::infinity();
  for (const Value& value : values) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    const auto* number = std::get_if<double>(&value);
    if (whole == nullptr && number == nullptr) return false;
    const double next = whole != nullptr ? static_cast<double>(*whole) : *number;
    if (!(next > last)) return false;
    last = next;
  }
  return true;
}

// What a Parameters of this one alone says, without the name, which the place says already.
Status check_alone(const YamlView& view, Parameter parameter) {
  parameter.when.reset();
  const std::string prefix = parameter.name + ": ";
  const auto created = Parameters::create({std::move(parameter)});
  if (created) return {};
  const std::string& message = created.error().message;
  return view.error(message.starts_with(prefix) ? message.substr(prefix.size()) : message);
}

Status read_domain(const YamlView& view, Parameter& parameter) {
  const auto values = view.find("values");
  const auto range = view.find("range");
  FLEETFIT_TRY(values);
  FLEETFIT_TRY(range);
  if (values->has_value() == range->has_value()) {
    return view.error("expected either values: [a, b, …] or range: [lowest, highest]");
  }
  if (*range) {
    std::pair<double, double> ends;
    Status good = first_error({view.allow_only({"range", "integer", "log", "when"}),
                               read_field(view, "range", ends, read_ends),
                               read_field(view, "integer", parameter.integer, read_boolean),
                               read_field(view, "log", parameter.log, read_boolean)});
    parameter.low = ends.first;
    parameter.high = ends.second;
    return good ? check_alone(**range, parameter) : good;
  }
  Status good = first_error({view.allow_only({"values", "when"}),
                             read_field(view, "values", parameter.values, read_values)});
  parameter.ordered = increasing(parameter.values);
  return good ? check_alone(**values, parameter) : good;
}

Result<Parameter> read_parameter(const YamlView& view, std::string name, Group group,
                                 std::span<const Parameter> before) {
  Parameter parameter = {.name = std::move(name), .group = group};
  if (parameter.name.empty()) return view.error("a parameter needs a name");
  if (std::ranges::find(before, parameter.name, &Parameter::name) != before.end()) {
    return view.error("there is a parameter of this name in another group");
  }
  if (before.size() >= kMostParameters) {
    return view.error(fmt::format("more than {} parameters", kMostParameters));
  }
  const auto condition = [&](const YamlView& when) { return read_condition(when, before); };
  FLEETFIT_TRY(first_error(
      {read_domain(view, parameter), read_field(view, "when", parameter.when, condition)}));
  return parameter;
}

Status check_names(const YamlView& group, const workloads::Workload& workload) {
  if (!group.is_map()) return {};
  FLEETFIT_ASSIGN(const auto members, group.members());
  for (const auto& [name, value] : members) {
    const auto& settings = workload.settings;
    if (std::ranges::find(settings, name, &workloads::Setting::name) == settings.end())
      return value.error(
          fmt::format("{} takes no such parameter; 'fleetfit workload show {}' "
                      "lists them",
                      workload.name, workload.name));
  }
  return {};
}

}  // namespace

Status read_group(const YamlView& view, Group group, std::vector<Parameter>& all) {
  FLEETFIT_ASSIGN(const auto members, view.members());
  for (const auto& [name, value] : members) {
    FLEETFIT_ASSIGN(auto parameter, read_parameter(value, name, group, all));
    all.push_back(std::move(parameter));
  }
  return {};
}

Result<Parameters> read_parameters(const YamlView& view) {
  FLEETFIT_TRY(view.allow_only({"model", "training", "system"}));
  const auto members = view.members();
  std::vector<Parameter> all;
  for (const auto& [key, value] : *members) {
    if (value.node().kind == YamlNode::Kind::nothing) continue;
    FLEETFIT_TRY(read_group(value, *core::parse_name<Group>(key), all));
  }
  if (all.empty()) return view.error("there has to be a parameter at least");
  auto created = Parameters::create(std::move(all));
  if (!created) return view.error(created.error().message);
  return created;
}

Status check_builtin(const YamlView& study, const Workload& workload) {
  if (workload.builtin.empty()) return {};
  const auto known = workloads::find_workload(workload.builtin);
  if (!known) {
    const auto place = study.at("workload");
    const auto name = place ? place->at("builtin") : place;
    return name ? name->error(known.error().message) : study.error(known.error().message);
  }
  FLEETFIT_ASSIGN(const auto groups, study.at("parameters"));
  FLEETFIT_ASSIGN(const auto members, groups.members());
  for (const auto& group : members) FLEETFIT_TRY(check_names(group.value, **known));
  return {};
}

}  // namespace fleetfit::tune
