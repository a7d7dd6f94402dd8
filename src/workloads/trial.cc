#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/workloads/workloads.h"

namespace fleetfit::workloads {
namespace {

const Setting* find_setting(const Workload& workload, std::string_view name) {
  const auto found = std::ranges::find(workload.settings, name, &Setting::name);
  return found == workload.settings.end() ? nullptr : &*found;
}

Status check_names(const Workload& workload, const core::JsonView& params) {
  FLEETFIT_ASSIGN(const auto members, params.members());
  for (const auto& [key, value] : members) {
    if (find_setting(workload, key) != nullptr) continue;
    std::vector<std::string_view> names;
    for (const auto& setting : workload.settings) names.push_back(setting.name);
    return value.error(fmt::format("{} takes no parameter '{}'; it takes {}", workload.name, key,
                                   fmt::join(names, ", ")));
  }
  return {};
}

bool is_choice(const Setting& setting, const std::string& written) {
  return setting.choices.empty() ||
         std::ranges::find(setting.choices, written) != setting.choices.end();
}

Result<double> read_number(const Setting& setting, const core::JsonView& value) {
  const auto number = value.as_number();
  if (!number) return number;
  if (setting.kind == SettingKind::integer && *number != std::round(*number))
    return value.error(fmt::format("{:g} is no whole number", *number));
  if (*number < setting.min || *number > setting.max)
    return value.error(
        fmt::format("{:g} is not between {:g} and {:g}", *number, setting.min, setting.max));
  if (!is_choice(setting, fmt::format("{:g}", *number)))
    return value.error(
        fmt::format("{:g} is none of {}", *number, fmt::join(setting.choices, ", ")));
  return number;
}

Result<std::string> read_text(const Setting& setting, const core::JsonView& value) {
  auto text = value.as_text();
  if (!text) return text;
  if (!is_choice(setting, *text))
    return value.error(fmt::format("'{}' is none of {}", *text, fmt::join(setting.choices, ", ")));
  return text;
}

bool says_what(const Setting& setting) {
  return setting.group != "system" && setting.name != "data";
}

}  // namespace

Result<Settings> Settings::read(const Workload& workload, const core::JsonView& params) {
  FLEETFIT_TRY(check_names(workload, params));
  Settings settings;
  for (const auto& setting : workload.settings) {
    FLEETFIT_ASSIGN(const auto given, params.find(setting.name));
    if (setting.kind == SettingKind::text) {
      FLEETFIT_ASSIGN(auto text, given ? read_text(setting, *given) : setting.preset_text);
      if (says_what(setting)) settings.key_.push_back(fmt::format("{}={}", setting.name, text));
      settings.texts_.emplace(setting.name, std::move(text));
      continue;
    }
    FLEETFIT_ASSIGN(const auto number, given ? read_number(setting, *given) : setting.preset);
    if (says_what(setting)) settings.key_.push_back(fmt::format("{}={}", setting.name, number));
    settings.numbers_.emplace(setting.name, number);
  }
  std::ranges::sort(settings.key_);
  return settings;
}

std::int64_t Settings::integer(std::string_view name) const { return std::llround(number(name)); }

double Settings::number(std::string_view name) const {
  const auto found = numbers_.find(name);
  assert(found != numbers_.end());
  return found->second;
}

const std::string& Settings::text(std::string_view name) const {
  const auto found = texts_.find(name);
  assert(found != texts_.end());
  return found->second;
}

std::string Settings::key() const { return fmt::format("{}", fmt::join(key_, " ")); }

namespace {

core::Fields fields_of_budget() {
  static constexpr core::Field kAll[] = {
      core::field<&TrialRequest::epochs>("epochs").between(0, 1'000'000),
      core::field<&TrialRequest::data_fraction>("data_fraction")
          .above(0)
          .up_to(1)
          .may_be_missing()};
  return {.all = kAll};
}

/// The parameters; the study's seed is theirs, unless they have one of their own.
nlohmann::json params_of(const nlohmann::json& document) {
  constexpr std::uint64_t kMostSeed = std::uint64_t{1} << 52;
  auto params = document.value("params", nlohmann::json::object());
  const auto seed = document.find("seed");
  if (params.is_object() && !params.contains("seed") && seed != document.end() &&
      seed->is_number_unsigned())
    params["seed"] = seed->get<std::uint64_t>() % kMostSeed;
  return params;
}

}  // namespace

core::Fields fields_of(const TrialRequest*) {
  static constexpr core::Field kAll[] = {
      core::field<&TrialRequest::checkpoint_dir>("checkpoint_dir"),
      core::field<&TrialRequest::resume>("resume").may_be_missing(),
      core::field<&TrialRequest::study>("study").may_be_missing(),
      core::field<&TrialRequest::trial>("trial").may_be_missing()};
  return {.all = kAll};
}

Result<TrialRequest> read_trial(const Workload& workload, std::string_view document) {
  constexpr const char* kName = "FLEETFIT_TRIAL";
  FLEETFIT_ASSIGN(const auto json, core::parse_json(document, kName));
  const core::JsonView view(json, kName);
  TrialRequest request;
  FLEETFIT_ASSIGN(const auto budget, view.at("budget"));
  FLEETFIT_TRY(core::read(budget, fields_of_budget(), &request));
  FLEETFIT_TRY(core::read(view, request));
  const auto params = params_of(json);
  FLEETFIT_ASSIGN(
      request.settings,
      Settings::read(workload, core::JsonView(params, std::string(kName) + ": params")));
  return request;
}

}  // namespace fleetfit::workloads
