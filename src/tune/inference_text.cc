#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/tune/inference.h"
#include "fleetfit/tune/scenario.h"

namespace fleetfit::tune {
namespace {

// Changes whenever results mean something else, so that older ones are not taken for new ones.
constexpr int kVersion = 1;

tl::unexpected<Error> no_scenario(std::string_view text) {
  return core::refuse(
      fmt::format("'{}' is no scenario; there are single, offline, server:SAMPLES@PERIODms "
                  "and multistream:RATEhz",
                  text));
}

/// The positive number that `text` is, but for a unit behind it.
template <class T>
std::optional<T> positive(std::string_view text, std::string_view unit) {
  if (text.ends_with(unit)) text.remove_suffix(unit.size());
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!(value > 0) || value > static_cast<T>(1'000'000'000)) return std::nullopt;
  return value;
}

std::optional<Scenario> parse_server(std::string_view arguments) {
  const auto at = arguments.find('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto samples = positive<std::int64_t>(arguments.substr(0, at), "");
  const auto period = positive<double>(arguments.substr(at + 1), "ms");
  if (!samples || !period || *samples > 1'000'000) return std::nullopt;
  return Scenario{.kind = ScenarioKind::server, .samples = *samples, .period_ms = *period};
}

std::optional<Scenario> parse_multistream(std::string_view arguments) {
  const auto rate = positive<double>(arguments, "hz");
  if (!rate) return std::nullopt;
  return Scenario{.kind = ScenarioKind::multistream, .rate_hz = *rate};
}

std::string text_of(const Parameter& parameter) {
  if (!parameter.is_choice())
    return fmt::format("{}={}..{}{}", parameter.name, parameter.low, parameter.high,
                       parameter.log ? " log" : "");
  std::vector<std::string> values;
  for (const auto& value : parameter.values)
    values.push_back(std::visit([](const auto& v) { return fmt::format("{}", v); }, value));
  return fmt::format("{}={}", parameter.name, fmt::join(values, ","));
}

nlohmann::ordered_json to_json(const InferenceCost& cost) {
  nlohmann::ordered_json json = {{"latency_ms", cost.cost.latency_ms},
                                 {"spread_ms", cost.spread_ms},
                                 {"source", cost.predicted ? "predicted" : "measured"}};
  if (const auto& spread = cost.cost.spread) json["runs_ms"] = core::to_json(*spread);
  if (cost.cost.energy_mj)
    json["energy_mj"] = {{"value", *cost.cost.energy_mj}, {"source", cost.energy_source}};
  if (!cost.note.empty()) json["note"] = cost.note;
  return json;
}

nlohmann::ordered_json to_json(const InferenceTrial& trial) {
  nlohmann::ordered_json json = {{"setting", to_json(trial.setting)}};
  if (!trial.asked) json["asked"] = false;
  if (!trial.cost) {
    json["reason"] = trial.reason;
    return json;
  }
  json["cost"] = to_json(*trial.cost);
  json["response"] = core::to_json(trial.response);
  return json;
}

Status read_cost(const core::JsonView& json, InferenceCost& cost) {
  FLEETFIT_ASSIGN(cost.cost.latency_ms, json.number("latency_ms"));
  FLEETFIT_ASSIGN(cost.spread_ms, json.number("spread_ms"));
  FLEETFIT_ASSIGN(const auto source, json.text_or("source", ""));
  FLEETFIT_ASSIGN(cost.note, json.text_or("note", ""));
  FLEETFIT_ASSIGN(const auto runs, json.find("runs_ms"));
  if (runs) FLEETFIT_TRY(core::read(*runs, cost.cost.spread.emplace()));
  FLEETFIT_ASSIGN(const auto energy, json.find("energy_mj"));
  if (energy) {
    FLEETFIT_ASSIGN(cost.cost.energy_mj, energy->number("value"));
    FLEETFIT_ASSIGN(cost.energy_source, energy->text_or("source", ""));
  }
  cost.predicted = source == "predicted";
  return {};
}

Result<InferenceTrial> read_trial(const core::JsonView& json) {
  InferenceTrial trial;
  FLEETFIT_ASSIGN(const auto setting, json.find("setting"));
  if (setting) FLEETFIT_TRY(core::read(*setting, trial.setting));
  FLEETFIT_ASSIGN(trial.asked, json.boolean_or("asked", true));
  FLEETFIT_ASSIGN(trial.reason, json.text_or("reason", ""));
  FLEETFIT_ASSIGN(const auto cost, json.find("cost"));
  if (cost) FLEETFIT_TRY(read_cost(*cost, trial.cost.emplace()));
  FLEETFIT_ASSIGN(const auto response, json.find("response"));
  if (response) FLEETFIT_TRY(core::read(*response, trial.response));
  return trial;
}

Status read_best(const core::JsonView& json, InferenceResult& result) {
  FLEETFIT_ASSIGN(const auto found, json.find("best"));
  if (!found) return {};
  FLEETFIT_ASSIGN(const auto best,
                  found->as_integer({.min = 0, .max = std::ssize(result.trials) - 1}));
  result.best = static_cast<std::size_t>(best);
  if (!result.trials[*result.best].cost) return found->error("is a trial without a cost");
  return {};
}

}  // namespace

Result<Scenario> parse_scenario(std::string_view text) {
  if (text == "single") return Scenario{.kind = ScenarioKind::single};
  if (text == "offline") return Scenario{.kind = ScenarioKind::offline};
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return no_scenario(text);
  const auto arguments = text.substr(colon + 1);
  const auto scenario = text.substr(0, colon) == "server"        ? parse_server(arguments)
                        : text.substr(0, colon) == "multistream" ? parse_multistream(arguments)
                                                                 : std::nullopt;
  if (!scenario) return no_scenario(text);
  return *scenario;
}

std::string describe(const Scenario& scenario) {
  if (scenario.kind == ScenarioKind::server)
    return fmt::format("server:{}@{}ms", scenario.samples, scenario.period_ms);
  if (scenario.kind == ScenarioKind::multistream)
    return fmt::format("multistream:{}hz", scenario.rate_hz);
  return std::string(to_string(scenario.kind));
}

core::Fields fields_of(const RunSpread*) {
  static constexpr core::Field kAll[] = {core::field<&RunSpread::mean_ms>("mean"),
                                         core::field<&RunSpread::p90_ms>("p90"),
                                         core::field<&RunSpread::p99_ms>("p99")};
  return {.all = kAll};
}

core::Fields fields_of(const Response*) {
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Response, mean_ms, p95_ms, p99_ms, throughput, busy, run_ms, run_samples),
      core::field<&Response::samples>("samples").from(0),
      core::field<&Response::saturated>("saturated"),
      core::field<&Response::energy_mj>("energy_mj").omit_default()};
  return {.all = kAll};
}

core::Fields fields_of(const InferenceSetting*) {
  using Setting = InferenceSetting;
  static constexpr core::Field kAll[] = {
      core::field<&Setting::batch>("batch_size").between(1, 1 << 20),
      core::field<&Setting::cores>("cores").from(1).omit_default(),
      core::field<&Setting::threads>("threads").from(1).omit_default(),
      core::field<&Setting::precision>("precision").omit_default()};
  return {.all = kAll};
}

nlohmann::ordered_json to_json(const InferenceSetting& setting) { return core::to_json(setting); }

std::string describe(const InferenceSetting& setting) {
  const auto counted = [](std::int64_t n, std::string_view what) {
    return fmt::format(", {} {}{}", n, what, n == 1 ? "" : "s");
  };
  std::string text = fmt::format("batch {}", setting.batch);
  if (setting.cores) text += counted(*setting.cores, "core");
  if (setting.threads) text += counted(*setting.threads, "thread");
  if (setting.precision) text += ", " + *setting.precision;
  return text;
}

nlohmann::ordered_json to_json(const InferenceResult& result) {
  nlohmann::ordered_json json = {{"version", kVersion}};
  json["best"] = result.best ? nlohmann::ordered_json(*result.best) : nullptr;
  json["settings"] = result.settings;
  json["elapsed_s"] = result.elapsed_s;
  auto& trials = json["trials"] = nlohmann::ordered_json::array();
  for (const auto& trial : result.trials) trials.push_back(to_json(trial));
  return json;
}

Result<InferenceResult> inference_result_from_json(const core::JsonView& json) {
  InferenceResult result;
  FLEETFIT_ASSIGN(const auto version, json.integer("version"));
  if (version != kVersion) return json.error(fmt::format("version {} is not known", version));
  FLEETFIT_ASSIGN(const auto trials, json.items("trials"));
  for (const auto& item : trials) {
    FLEETFIT_ASSIGN(auto trial, read_trial(item));
    result.trials.push_back(std::move(trial));
  }
  FLEETFIT_ASSIGN(const auto settings, json.integer("settings", {.min = 0}));
  result.settings = static_cast<std::size_t>(settings);
  FLEETFIT_ASSIGN(result.elapsed_s, json.number("elapsed_s"));
  FLEETFIT_TRY(read_best(json, result));
  return result;
}

std::string question_key(const InferenceStudy& study, SamplerKind algorithm) {
  std::vector<std::string> parameters;
  for (const auto& parameter : study.parameters.all()) parameters.push_back(text_of(parameter));
  return fmt::format("v{} {} {} {} {}", kVersion, describe(study.scenario), to_string(study.goal),
                     to_string(algorithm), fmt::join(parameters, " "));
}

}  // namespace fleetfit::tune
