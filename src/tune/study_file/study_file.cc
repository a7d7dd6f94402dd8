#include "tune/study_file/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleetfit/core/file.h"
#include "fleetfit/measure/device.h"

namespace fleetfit::tune {
namespace {

constexpr std::size_t kLongestName = 200;

Result<std::string> read_name(const YamlView& view) {
  auto text = view.as_text();
  if (!text) return text;
  if (text->empty()) return view.error("is empty");
  if (text->size() > kLongestName) {
    return view.error(fmt::format("is longer than {} bytes", kLongestName));
  }
  if (text->find('/') != std::string::npos || yaml::one_line(*text, text->size()) != *text) {
    return view.error("has to be one line without a slash");
  }
  return text;
}

Result<std::vector<std::string>> read_command(const YamlView& view) {
  if (!view.is_list()) return view.expected("a list such as [python3, train.py]");
  auto command = read_texts(view);
  if (command && command->front().empty()) return view.error("the program's name is empty");
  return command;
}

Result<std::vector<std::string>> read_devices(const YamlView& view) {
  auto devices = read_texts(view);
  if (!devices) return devices;
  std::set<std::string> seen;
  for (const std::string& device : *devices) {
    if (device.empty()) return view.error("a name is empty");
    if (!seen.insert(device).second) return view.error(fmt::format("{} occurs twice", device));
  }
  return devices;
}

Result<Workload> read_workload(const YamlView& view) {
  Workload workload;
  Status good =
      first_error({view.allow_only({"command", "builtin", "untrained", "timeout_s", "memory"}),
                   read_field(view, "command", workload.command, read_command),
                   read_field(view, "builtin", workload.builtin, read_name)});
  FLEETFIT_TRY(good);
  if (workload.command.empty() == workload.builtin.empty()) {
    return view.error("expected either command: [program, …] or builtin: NAME");
  }
  workload.writes_untrained = !workload.builtin.empty();
  const Status more =
      first_error({read_field(view, "untrained", workload.writes_untrained, read_boolean),
                   read_field(view, "timeout_s", workload.timeout_s, read_positive),
                   read_field(view, "memory", workload.memory_bytes, read_bytes)});
  FLEETFIT_TRY(more);
  return workload;
}

Result<BudgetKind> read_budget_kind(const YamlView& view) {
  return read_word<BudgetKind>(
      view,
      {{"multi", BudgetKind::multi}, {"epochs", BudgetKind::epochs}, {"data", BudgetKind::data}});
}

Result<double> read_number(const YamlView& view) { return view.as_number(); }
Result<std::int64_t> read_integer(const YamlView& view) { return view.as_integer(); }

// Names the line of the key that `check` complains of: "max_epochs: 1 is less than …".
Status check_budget(const YamlView& view, const BudgetOptions& budget) {
  Status good = check(budget);
  if (good) return good;
  const std::string& message = good.error().message;
  const auto colon = message.find(": ");
  const auto field = view.find(std::string_view(message).substr(0, colon));
  if (colon == std::string::npos || !field || !*field) return view.error(message);
  return (*field)->error(message.substr(colon + 2));
}

Result<BudgetOptions> read_budget(const YamlView& view) {
  BudgetOptions budget;
  auto max_trials = static_cast<std::int64_t>(budget.max_trials);
  Status good = first_error(
      {view.allow_only({"kind", "min_epochs", "max_epochs", "min_data", "eta", "max_trials"}),
       read_field(view, "kind", budget.kind, read_budget_kind),
       read_field(view, "min_epochs", budget.min_epochs, read_integer),
       read_field(view, "max_epochs", budget.max_epochs, read_integer),
       read_field(view, "min_data", budget.min_data, read_number),
       read_field(view, "eta", budget.eta, read_number),
       read_field(view, "max_trials", max_trials, read_count)});
  FLEETFIT_TRY(good);
  const bool epochs_grow = budget.kind != BudgetKind::data;
  const auto max_epochs = view.find("max_epochs");
  if (epochs_grow && !*max_epochs) return view.error("max_epochs is missing");
  if (!*max_epochs) budget.max_epochs = std::max<std::int64_t>(budget.min_epochs, 1);
  budget.max_trials = static_cast<std::size_t>(max_trials);
  if (Status possible = check_budget(view, budget); !possible) {
    return tl::unexpected(possible.error());
  }
  return budget;
}

Result<ScenarioKind> read_scenario_kind(const YamlView& view) {
  return read_word<ScenarioKind>(view, {{"single", ScenarioKind::single},
                                        {"offline", ScenarioKind::offline},
                                        {"server", ScenarioKind::server},
                                        {"multistream", ScenarioKind::multistream}});
}

Result<Scenario> read_scenario(const YamlView& view) {
  Scenario scenario;
  Status good = first_error(
      {require(view, {"kind"}), read_field(view, "kind", scenario.kind, read_scenario_kind)});
  FLEETFIT_TRY(good);
  switch (scenario.kind) {
    case ScenarioKind::server:
      good = first_error({view.allow_only({"kind", "samples", "period_ms"}),
                          require(view, {"samples", "period_ms"}),
                          read_field(view, "samples", scenario.samples, read_count),
                          read_field(view, "period_ms", scenario.period_ms, read_positive)});
      break;
    case ScenarioKind::multistream:
      good = first_error({view.allow_only({"kind", "rate_hz"}), require(view, {"rate_hz"}),
                          read_field(view, "rate_hz", scenario.rate_hz, read_positive)});
      break;
    case ScenarioKind::single:
    case ScenarioKind::offline:
      good = view.allow_only({"kind"});
      break;
  }
  FLEETFIT_TRY(good);
  return scenario;
}

Result<InferenceGoal> read_inference_goal(const YamlView& view) {
  return read_word<InferenceGoal>(view, {{"latency", InferenceGoal::latency},
                                         {"throughput", InferenceGoal::throughput},
                                         {"energy", InferenceGoal::energy}});
}

bool is_count(const Value& value) {
  const auto* whole = std::get_if<std::int64_t>(&value);
  return whole != nullptr && *whole >= 1;
}

Status check_counts(const YamlView& view, const Parameter& parameter) {
  const bool whole = parameter.is_choice() ? std::ranges::all_of(parameter.values, is_count)
                                           : parameter.integer && parameter.low >= 1;
  if (whole) return {};
  return view.error("expected whole numbers from 1; a range needs integer: true");
}

Status check_precisions(const YamlView& view, const Parameter& parameter) {
  if (!parameter.is_choice()) return view.error("expected values: [fp32, int8]");
  for (const Value& value : parameter.values) {
    const auto* text = std::get_if<std::string>(&value);
    const auto known =
        text != nullptr
            ? measure::parse_precision(*text)
            : Result<measure::Precision>(fail(ErrorCode::invalid_input, "expected fp32 or int8"));
    if (!known) return view.error(known.error().message);
  }
  return {};
}

Result<Parameters> read_inference_parameters(const YamlView& view) {
  std::vector<Parameter> all;
  Status good = first_error({view.allow_only({"batch_size", "cores", "threads", "precision"}),
                             read_group(view, Group::inference, all)});
  FLEETFIT_TRY(good);
  for (const Parameter& parameter : all) {
    const auto field = view.at(parameter.name);
    const Status fits = parameter.name == "precision" ? check_precisions(*field, parameter)
                                                      : check_counts(*field, parameter);
    FLEETFIT_TRY(fits);
    if (parameter.when) return field->error("parameters of inference have no conditions");
  }
  return Parameters::create(std::move(all));
}

struct Pair {
  SamplerKind sampler = SamplerKind::bohb;
  SchedulerKind scheduler = SchedulerKind::hyperband;
};

Result<Pair> read_pair_name(const YamlView& view) {
  using enum SamplerKind;
  using S = SchedulerKind;
  return read_word<Pair>(view, {{"bohb", {bohb, S::hyperband}},
                                {"tpe", {tpe, S::none}},
                                {"random", {random, S::none}},
                                {"grid", {grid, S::none}},
                                {"nsga2", {nsga2, S::none}},
                                {"hyperband", {random, S::hyperband}},
                                {"asha", {random, S::asha}},
                                {"median", {random, S::median}},
                                {"halving", {random, S::successive_halving}}});
}

Result<SamplerKind> read_sampler(const YamlView& view) {
  using enum SamplerKind;
  return read_word<SamplerKind>(
      view, {{"random", random}, {"grid", grid}, {"tpe", tpe}, {"bohb", bohb}, {"nsga2", nsga2}});
}

Result<SchedulerKind> read_scheduler(const YamlView& view) {
  using S = SchedulerKind;
  return read_word<S>(view, {{"none", S::none},
                             {"halving", S::successive_halving},
                             {"hyperband", S::hyperband},
                             {"asha", S::asha},
                             {"median", S::median}});
}

Result<Pair> read_pair(const YamlView& view) {
  if (!view.is_map()) return read_pair_name(view);
  Pair pair;
  Status good = first_error({view.allow_only({"sampler", "scheduler"}),
                             require(view, {"sampler", "scheduler"}),
                             read_field(view, "sampler", pair.sampler, read_sampler),
                             read_field(view, "scheduler", pair.scheduler, read_scheduler)});
  FLEETFIT_TRY(good);
  return pair;
}

Result<bool> read_hierarchical(const YamlView& view) {
  return read_word<bool>(view, {{"onefold", false}, {"hierarchical", true}});
}

Result<std::uint64_t> read_seed(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto seed, view.as_integer({.min = 0}));
  return static_cast<std::uint64_t>(seed);
}

Result<std::optional<InferenceStudy>> read_optional_inference(const YamlView& view) {
  FLEETFIT_ASSIGN(auto inference, read_inference(view));
  return std::optional(std::move(inference));
}

// Goals and limits come last: what they may name depends on the rest.
Result<Study> read_document(const YamlView& view) {
  Study study;
  Status good =
      first_error({view.allow_only({"name", "workload", "parameters", "inference", "objective",
                                    "constraints", "budget", "algorithm", "resources", "seed"}),
                   require(view, {"name", "parameters", "objective", "budget"}),
                   read_field(view, "name", study.name, read_name),
                   read_field(view, "workload", study.workload, read_workload),
                   read_field(view, "parameters", study.parameters, read_parameters),
                   read_field(view, "inference", study.inference, read_optional_inference),
                   read_field(view, "budget", study.budget, read_budget),
                   read_field(view, "algorithm", study.algorithm, read_algorithm),
                   read_field(view, "resources", study.resources, read_resources),
                   read_field(view, "seed", study.seed, read_seed)});
  FLEETFIT_TRY(good);
  if (Status builtin = check_builtin(view, study.workload); !builtin)
    return tl::unexpected(builtin.error());
  const auto objective = [&](const YamlView& field) { return read_objective(field, study); };
  const auto constraints = [&](const YamlView& field) { return read_constraints(field, study); };
  const Status goals =
      first_error({read_field(view, "objective", study.objective, objective),
                   read_field(view, "constraints", study.constraints, constraints)});
  FLEETFIT_TRY(goals);
  if (study.algorithm.hierarchical && !study.inference) {
    return view.error("algorithm.mode: hierarchical needs inference, which is missing");
  }
  return study;
}

}  // namespace

Result<std::optional<std::int64_t>> read_bytes(const YamlView& view) {
  FLEETFIT_ASSIGN(const auto text, view.as_text());
  const auto bytes = measure::parse_bytes(text);
  if (!bytes) return view.error(bytes.error().message);
  return *bytes;
}

Result<InferenceStudy> read_inference(const YamlView& view) {
  InferenceStudy inference;
  Status good = first_error(
      {view.allow_only({"devices", "parameters", "scenario", "objective"}),
       require(view, {"devices"}), read_field(view, "devices", inference.devices, read_devices),
       read_field(view, "parameters", inference.parameters, read_inference_parameters),
       read_field(view, "scenario", inference.scenario, read_scenario),
       read_field(view, "objective", inference.goal, read_inference_goal)});
  FLEETFIT_TRY(good);
  return inference;
}

Result<Algorithm> read_algorithm(const YamlView& view) {
  Algorithm algorithm;
  Pair model;
  Pair inference = {.sampler = algorithm.inference};
  Status good = first_error({view.allow_only({"model", "inference", "mode"}),
                             read_field(view, "model", model, read_pair),
                             read_field(view, "inference", inference, read_pair_name),
                             read_field(view, "mode", algorithm.hierarchical, read_hierarchical)});
  FLEETFIT_TRY(good);
  algorithm.sampler = model.sampler;
  algorithm.scheduler = model.scheduler;
  algorithm.inference = inference.sampler;
  return algorithm;
}

Result<Study> parse_study(std::string_view text, std::string_view file) {
  FLEETFIT_ASSIGN(const auto document, yaml::parse_yaml(text, file));
  return read_document(YamlView(document, file));
}

Result<Resources> parse_resources(std::string_view text, std::string_view name) {
  FLEETFIT_ASSIGN(const auto document, yaml::parse_yaml(text, name));
  return read_resources(YamlView(document, name));
}

Result<Study> read_study(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto text,
                  core::read_file(file, {.max_bytes = yaml::YamlLimits{}.max_bytes,
                                         .special_files = core::SpecialFiles::allow}));
  return parse_study(text, file.string());
}

}  // namespace fleetfit::tune
