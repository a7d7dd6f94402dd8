#include "tune/study_file/study_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fleetfit/core/file.h"
#include "fleetfit/measure/device.h"

namespace fleetfit::tune {
namespace {

constexpr std::size_t kLongestName = 200;

Result<std::string> parse_name(std::string_view text) {
  if (text.empty()) return core::refuse("is empty");
  if (text.size() > kLongestName)
    return core::refuse(fmt::format("is longer than {} bytes", kLongestName));
  if (text.find('/') != std::string_view::npos || yaml::one_line(text, text.size()) != text)
    return core::refuse("has to be one line without a slash");
  return std::string(text);
}

// Stands in a line of a batch script.
Result<std::string> parse_word(std::string_view text) {
  const auto is_odd = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (text.empty() || std::ranges::any_of(text, is_odd)) return core::refuse("expected one word");
  return std::string(text);
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
  FLEETFIT_ASSIGN(const auto command, view.find("command"));
  if (command && !command->is_list())
    return command->expected("a list such as [python3, train.py]");
  FLEETFIT_ASSIGN(auto workload, yaml::read<Workload>(view));
  if (command && workload.command.front().empty())
    return command->error("the program's name is empty");
  if (workload.command.empty() == workload.builtin.empty())
    return view.error("expected either command: [program, …] or builtin: NAME");
  FLEETFIT_ASSIGN(const auto untrained, view.find("untrained"));
  if (!untrained) workload.writes_untrained = !workload.builtin.empty();
  return workload;
}

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
  FLEETFIT_ASSIGN(auto budget, yaml::read<BudgetOptions>(view));
  const bool epochs_grow = budget.kind != BudgetKind::data;
  const auto max_epochs = view.find("max_epochs");
  if (epochs_grow && !*max_epochs) return view.error("max_epochs is missing");
  if (!*max_epochs) budget.max_epochs = std::max<std::int64_t>(budget.min_epochs, 1);
  FLEETFIT_TRY(check_budget(view, budget));
  return budget;
}

/// What a scenario of each kind has.
core::Fields fields_of_kind(ScenarioKind kind) {
  static constexpr auto kKind = core::field<&Scenario::kind>("kind");
  static constexpr core::Field kServer[] = {
      kKind, core::field<&Scenario::samples>("samples").between(1, 1e9),
      core::field<&Scenario::period_ms>("period_ms").above(0)};
  static constexpr core::Field kMultistream[] = {
      kKind, core::field<&Scenario::rate_hz>("rate_hz").above(0)};
  core::Fields fields{.all = std::span(&kKind, 1), .others = core::OtherKeys::refused};
  if (kind == ScenarioKind::server) fields.all = kServer;
  if (kind == ScenarioKind::multistream) fields.all = kMultistream;
  return fields;
}

Result<Scenario> read_scenario(const YamlView& view) {
  Scenario scenario;
  auto kind = fields_of_kind(ScenarioKind::single);
  kind.others = core::OtherKeys::ignored;
  FLEETFIT_TRY(yaml::read(view, kind, &scenario));
  FLEETFIT_TRY(yaml::read(view, fields_of_kind(scenario.kind), &scenario));
  return scenario;
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
    const auto known = text != nullptr
                           ? measure::parse_precision(*text)
                           : Result<measure::Precision>(core::refuse("expected fp32 or int8"));
    if (!known) return view.error(known.error().message);
  }
  return {};
}

Result<Parameters> read_inference_parameters(const YamlView& view) {
  std::vector<Parameter> all;
  FLEETFIT_TRY(first_error({view.allow_only({"batch_size", "cores", "threads", "precision"}),
                            read_group(view, Group::inference, all)}));
  for (const Parameter& parameter : all) {
    const auto field = view.at(parameter.name);
    FLEETFIT_TRY(parameter.name == "precision" ? check_precisions(*field, parameter)
                                               : check_counts(*field, parameter));
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

core::Fields fields_of(const Pair*) {
  static constexpr core::Field kAll[] = {FLEETFIT_MEMBERS(Pair, sampler, scheduler)};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

Result<Pair> read_pair(const YamlView& view) {
  return view.is_map() ? yaml::read<Pair>(view) : read_pair_name(view);
}

Result<bool> read_hierarchical(const YamlView& view) {
  return read_word<bool>(view, {{"onefold", false}, {"hierarchical", true}});
}

Result<std::optional<InferenceStudy>> read_optional_inference(const YamlView& view) {
  FLEETFIT_ASSIGN(auto inference, read_inference(view));
  return std::optional(std::move(inference));
}

// Goals and limits come last: what they may name depends on the rest.
Result<Study> read_document(const YamlView& view) {
  Study study;
  FLEETFIT_TRY(
      first_error({yaml::read(view, study), require(view, {"parameters", "objective", "budget"}),
                   read_field(view, "workload", study.workload, read_workload),
                   read_field(view, "parameters", study.parameters, read_parameters),
                   read_field(view, "inference", study.inference, read_optional_inference),
                   read_field(view, "budget", study.budget, read_budget),
                   read_field(view, "algorithm", study.algorithm, read_algorithm)}));
  FLEETFIT_TRY(check_builtin(view, study.workload));
  const auto objective = [&](const YamlView& field) { return read_objective(field, study); };
  const auto constraints = [&](const YamlView& field) { return read_constraints(field, study); };
  FLEETFIT_TRY(first_error({read_field(view, "objective", study.objective, objective),
                            read_field(view, "constraints", study.constraints, constraints)}));
  if (study.algorithm.hierarchical && !study.inference) {
    return view.error("algorithm.mode: hierarchical needs inference, which is missing");
  }
  return study;
}

}  // namespace

core::Fields fields_of(const Workload*) {
  static constexpr core::Field kAll[] = {
      core::field<&Workload::command>("command").at_least(1).may_be_missing(),
      core::parsed_field<&Workload::builtin, parse_name>("builtin").may_be_missing(),
      core::field<&Workload::writes_untrained>("untrained").may_be_missing(),
      core::field<&Workload::timeout_s>("timeout_s").above(0).may_be_missing(),
      core::parsed_field<&Workload::memory_bytes, measure::parse_bytes>("memory").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const InferenceStudy*) {
  static constexpr core::Field kAll[] = {
      core::other_field("devices"), core::other_field("parameters"), core::other_field("scenario"),
      core::field<&InferenceStudy::goal>("objective").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const Study*) {
  static constexpr core::Field kAll[] = {
      core::parsed_field<&Study::name, parse_name>("name"),
      core::other_field("workload"),
      core::other_field("parameters"),
      core::other_field("inference"),
      core::other_field("objective"),
      core::other_field("constraints"),
      core::other_field("budget"),
      core::other_field("algorithm"),
      core::field<&Study::resources>("resources").may_be_missing(),
      core::field<&Study::seed>("seed").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Fields fields_of(const Resources*) {
  static constexpr core::Field kAll[] = {
      core::field<&Resources::cores>("cores").between(1, 1e9),
      core::parsed_field<&Resources::memory_bytes, measure::parse_bytes>("memory").may_be_missing(),
      core::field<&Resources::gpus>("gpus").between(1, 1e9),
      core::field<&Resources::time_min>("time_min").between(1, 1e9),
      core::parsed_field<&Resources::partition, parse_word>("partition").may_be_missing(),
      core::parsed_field<&Resources::constraint, parse_word>("constraint").may_be_missing(),
      core::parsed_field<&Resources::account, parse_word>("account").may_be_missing()};
  return {.all = kAll, .others = core::OtherKeys::refused};
}

core::Names names_of(InferenceGoal) {
  static constexpr core::Name kAll[] = {{InferenceGoal::latency, "latency"},
                                        {InferenceGoal::throughput, "throughput"},
                                        {InferenceGoal::energy, "energy"}};
  return {.what = "goal of inference", .all = kAll};
}

core::Names names_of(SamplerKind) {
  static constexpr core::Name kAll[] = {{SamplerKind::random, "random"},
                                        {SamplerKind::grid, "grid"},
                                        {SamplerKind::tpe, "tpe"},
                                        {SamplerKind::bohb, "bohb"},
                                        {SamplerKind::nsga2, "nsga2"}};
  return {.what = "sampler", .all = kAll};
}

core::Names names_of(SchedulerKind) {
  static constexpr core::Name kAll[] = {{SchedulerKind::none, "none"},
                                        {SchedulerKind::successive_halving, "halving"},
                                        {SchedulerKind::hyperband, "hyperband"},
                                        {SchedulerKind::asha, "asha"},
                                        {SchedulerKind::median, "median"}};
  return {.what = "scheduler", .all = kAll};
}

Result<InferenceStudy> read_inference(const YamlView& view) {
  InferenceStudy inference;
  FLEETFIT_TRY(
      first_error({yaml::read(view, inference), require(view, {"devices"}),
                   read_field(view, "devices", inference.devices, read_devices),
                   read_field(view, "parameters", inference.parameters, read_inference_parameters),
                   read_field(view, "scenario", inference.scenario, read_scenario)}));
  return inference;
}

Result<Algorithm> read_algorithm(const YamlView& view) {
  Algorithm algorithm;
  Pair model;
  Pair inference = {.sampler = algorithm.inference};
  FLEETFIT_TRY(first_error({view.allow_only({"model", "inference", "mode"}),
                            read_field(view, "model", model, read_pair),
                            read_field(view, "inference", inference, read_pair_name),
                            read_field(view, "mode", algorithm.hierarchical, read_hierarchical)}));
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
  return yaml::read<Resources>(YamlView(document, name));
}

Result<Study> read_study(const std::filesystem::path& file) {
  FLEETFIT_ASSIGN(const auto text,
                  core::read_file(file, {.max_bytes = yaml::YamlLimits{}.max_bytes,
                                         .special_files = core::SpecialFiles::allow}));
  return parse_study(text, file.string());
}

}  // namespace fleetfit::tune
