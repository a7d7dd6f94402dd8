#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "fleetfit/tune/inference.h"

namespace fleetfit::tune {
namespace {

// Changes whenever results mean something else, so that older ones are not taken for new ones.
constexpr int kVersion = 1;

std::string_view name_of(InferenceGoal goal) {
  switch (goal) {
    case InferenceGoal::latency:
      return "latency";
    case InferenceGoal::throughput:
      return "throughput";
    case InferenceGoal::energy:
      return "energy";
  }
  return "";
}

std::string_view name_of(SamplerKind kind) {
  switch (kind) {
    case SamplerKind::random:
      return "random";
    case SamplerKind::grid:
      return "grid";
    case SamplerKind::tpe:
      return "tpe";
    case SamplerKind::bohb:
      return "bohb";
    case SamplerKind::nsga2:
      return "nsga2";
  }
  return "";
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
  if (const auto& spread = cost.cost.spread)
    json["runs_ms"] = {{"mean", spread->mean_ms}, {"p90", spread->p90_ms}, {"p99", spread->p99_ms}};
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
  json["response"] = to_json(trial.response);
  return json;
}

/// Runs one reader after another until one fails.
class Reader {
 public:
  explicit Reader(const core::JsonView& json) : json_(json) {}

  template <class T>
  void take(Result<T> value, T& out) {
    if (!status_) return;
    if (value) {
      out = *std::move(value);
    } else {
      status_ = tl::unexpected(std::move(value.error()));
    }
  }
  void number(std::string_view key, double& out) { take(json_.number(key), out); }
  void text(std::string_view key, std::string& out) { take(json_.text_or(key, ""), out); }

  /// Gives a field to `read`, if it is there.
  template <class Read>
  void field(std::string_view key, const Read& read) {
    if (!status_) return;
    const auto found = json_.find(key);
    if (!found) {
      status_ = tl::unexpected(found.error());
    } else if (*found) {
      status_ = read(**found);
    }
  }
  Status status() const { return status_; }

 private:
  const core::JsonView& json_;
  Status status_;
};

Status read_integer(const core::JsonView& json, std::optional<std::int64_t>& out) {
  return json.as_integer({.min = 1}).map([&](std::int64_t value) { out = value; });
}

Status read_setting(const core::JsonView& json, InferenceSetting& setting) {
  Reader reader(json);
  reader.take(json.integer("batch_size", {.min = 1, .max = 1 << 20}), setting.batch);
  reader.field("cores", [&](const auto& view) { return read_integer(view, setting.cores); });
  reader.field("threads", [&](const auto& view) { return read_integer(view, setting.threads); });
  reader.field("precision", [&](const core::JsonView& view) {
    return view.as_text().map([&](std::string text) { setting.precision = std::move(text); });
  });
  return reader.status();
}

Status read_spread(const core::JsonView& json, RunSpread& spread) {
  Reader reader(json);
  reader.number("mean", spread.mean_ms);
  reader.number("p90", spread.p90_ms);
  reader.number("p99", spread.p99_ms);
  return reader.status();
}

Status read_cost(const core::JsonView& json, InferenceCost& cost) {
  Reader reader(json);
  std::string source;
  reader.number("latency_ms", cost.cost.latency_ms);
  reader.number("spread_ms", cost.spread_ms);
  reader.text("source", source);
  reader.text("note", cost.note);
  reader.field("runs_ms",
               [&](const auto& view) { return read_spread(view, cost.cost.spread.emplace()); });
  reader.field("energy_mj", [&](const core::JsonView& view) {
    Reader energy(view);
    energy.number("value", cost.cost.energy_mj.emplace());
    energy.text("source", cost.energy_source);
    return energy.status();
  });
  cost.predicted = source == "predicted";
  return reader.status();
}

Result<InferenceTrial> read_trial(const core::JsonView& json) {
  InferenceTrial trial;
  Reader reader(json);
  reader.field("setting", [&](const auto& view) { return read_setting(view, trial.setting); });
  reader.take(json.boolean_or("asked", true), trial.asked);
  reader.text("reason", trial.reason);
  reader.field("cost", [&](const auto& view) { return read_cost(view, trial.cost.emplace()); });
  reader.field("response", [&](const core::JsonView& view) {
    return response_from_json(view).map([&](const Response& r) { trial.response = r; });
  });
  FLEETFIT_TRY(reader.status());
  return trial;
}

}  // namespace

nlohmann::ordered_json to_json(const InferenceSetting& setting) {
  nlohmann::ordered_json json = {{"batch_size", setting.batch}};
  if (setting.cores) json["cores"] = *setting.cores;
  if (setting.threads) json["threads"] = *setting.threads;
  if (setting.precision) json["precision"] = *setting.precision;
  return json;
}

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
  Reader reader(json);
  std::int64_t settings = 0;
  reader.take(json.integer("settings", {.min = 0}), settings);
  reader.number("elapsed_s", result.elapsed_s);
  reader.field("best", [&](const core::JsonView& view) -> Status {
    FLEETFIT_ASSIGN(const auto best,
                    view.as_integer({.min = 0, .max = std::ssize(result.trials) - 1}));
    result.best = static_cast<std::size_t>(best);
    if (!result.trials[*result.best].cost) return view.error("is a trial without a cost");
    return {};
  });
  FLEETFIT_TRY(reader.status());
  result.settings = static_cast<std::size_t>(settings);
  return result;
}

std::string question_key(const InferenceStudy& study, SamplerKind algorithm) {
  std::vector<std::string> parameters;
  for (const auto& parameter : study.parameters.all()) parameters.push_back(text_of(parameter));
  return fmt::format("v{} {} {} {} {}", kVersion, describe(study.scenario), name_of(study.goal),
                     name_of(algorithm), fmt::join(parameters, " "));
}

}  // namespace fleetfit::tune
