#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/open_dimensions.h"
#include "cli/program.h"
#include "cli/text_table.h"
#include "cli/tune/study_text.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/file.h"

namespace fleetfit::cli {
namespace {

using app::DeviceInference;

struct TuneFlags {
  std::string model;
  std::vector<std::string> devices;
  std::vector<std::string> dimensions;
  std::string scenario = "single";
  std::string batch = "1..32";
  std::string cores;
  std::string threads;
  std::string precision;
  std::string goal = "latency";
  std::string algorithm = "grid";
  double seconds = 1;
  double confirm_s = 0;
  double watts_per_core = measure::kAssumedCoreWatts;
  std::string plot;
  bool again = false;
};

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto comma = std::min(text.find(',', start), text.size());
    parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
}

/// "1..32" or "1,2,8".
Result<tune::Parameter> number_parameter(std::string name, const std::string& text) {
  tune::Parameter parameter{.name = std::move(name), .group = tune::Group::inference};
  if (const auto dots = text.find(".."); dots != std::string::npos) {
    const auto low = whole_number(std::string_view(text).substr(0, dots));
    const auto high = whole_number(std::string_view(text).substr(dots + 2));
    if (low && high) {
      parameter.low = static_cast<double>(*low);
      parameter.high = static_cast<double>(*high);
      parameter.integer = true;
      return parameter;
    }
  }
  for (const auto part : split(text)) {
    const auto number = whole_number(part);
    if (!number) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: '{}' is neither a range such as 1..32 nor numbers such as 1,2,4",
                              parameter.name, text));
    }
    parameter.values.emplace_back(*number);
  }
  return parameter;
}

Result<tune::Parameters> parameters_of(const TuneFlags& flags) {
  std::vector<tune::Parameter> parameters;
  const std::pair<const char*, const std::string&> numbers[] = {
      {"batch_size", flags.batch}, {"cores", flags.cores}, {"threads", flags.threads}};
  for (const auto& [name, text] : numbers) {
    if (text.empty()) continue;
    FLEETFIT_ASSIGN(auto parameter, number_parameter(name, text));
    parameters.push_back(std::move(parameter));
  }
  if (!flags.precision.empty()) {
    tune::Parameter precision{.name = "precision", .group = tune::Group::inference};
    for (const auto part : split(flags.precision)) precision.values.emplace_back(std::string(part));
    parameters.push_back(std::move(precision));
  }
  auto all = tune::Parameters::create(std::move(parameters));
  if (!all) return all;
  FLEETFIT_TRY(tune::check_inference_parameters(*all));
  return all;
}

constexpr std::pair<std::string_view, tune::InferenceGoal> kGoals[] = {
    {"latency", tune::InferenceGoal::latency},
    {"throughput", tune::InferenceGoal::throughput},
    {"energy", tune::InferenceGoal::energy}};
constexpr std::pair<std::string_view, tune::SamplerKind> kAlgorithms[] = {
    {"grid", tune::SamplerKind::grid},
    {"random", tune::SamplerKind::random},
    {"tpe", tune::SamplerKind::tpe},
    {"bohb", tune::SamplerKind::bohb}};

template <class Pairs>
auto value_named(const Pairs& pairs, std::string_view name) {
  return std::ranges::find(pairs, name, [](const auto& pair) { return pair.first; })->second;
}

template <class Pairs>
std::vector<std::string> names_of(const Pairs& pairs) {
  std::vector<std::string> names;
  for (const auto& pair : pairs) names.emplace_back(pair.first);
  return names;
}

Result<app::InferenceRequest> request_of(const Context& context, const TuneFlags& flags) {
  FLEETFIT_ASSIGN(auto options, model_options({.dimensions = flags.dimensions}));
  auto scenario = tune::parse_scenario(flags.scenario);
  if (!scenario) return core::within("--scenario", std::move(scenario.error()));
  FLEETFIT_ASSIGN(auto parameters, parameters_of(flags));
  app::InferenceRequest request{
      .model = flags.model,
      .options = std::move(options),
      .study = {.devices = flags.devices,
                .parameters = std::move(parameters),
                .scenario = *scenario,
                .goal = value_named(kGoals, flags.goal)},
      .algorithm = value_named(kAlgorithms, flags.algorithm),
      .seed = context.flags.seed,
      .seconds = flags.seconds,
      .threads = context.threads(),
      .power = measure::assumed_power(flags.watts_per_core),
      .known = flags.again ? app::KnownAnswers::replace : app::KnownAnswers::use};
  if (request.study.devices.empty()) request.study.devices = {std::string(app::kLocalDevice)};
  return request;
}

std::string energy_text(const tune::InferenceTrial& trial) {
  if (!trial.response.energy_mj) return "-";
  return fmt::format("{:.3g} mJ {}", *trial.response.energy_mj, trial.cost->energy_source);
}

std::string table_text(const tune::InferenceResult& result) {
  TextTable table(
      " | setting | a run, ms {} | response ms {:.4g} | p95 {:.4g} | p99 {:.4g} | samples/s at "
      "most {:.4g} | "
      "energy a sample {} | ");
  for (std::size_t i = 0; i < result.trials.size(); ++i) {
    const auto& trial = result.trials[i];
    if (!trial.asked) continue;
    const auto name = tune::describe(trial.setting);
    if (!trial.cost) {
      table.add("", name, "-", "-", "-", "-", "-", "-", trial.reason);
      continue;
    }
    const auto& response = trial.response;
    table.add(result.best == i ? "*" : "", name,
              fmt::format("{:.4g} ± {:.2g}", trial.cost->cost.latency_ms, trial.cost->spread_ms),
              response.mean_ms, response.p95_ms, response.p99_ms, response.capacity(),
              energy_text(trial), response.saturated ? "saturated" : trial.cost->note);
  }
  return table.text();
}

std::string inference_text(const DeviceInference& inference) {
  const auto& result = inference.result;
  std::string text = table_text(result);
  if (!result.best) return text + fmt::format("Nothing to recommend on {}.\n", inference.device);
  const auto& best = result.trials[*result.best];
  const char* how = best.cost->predicted ? "predicted" : "measured";
  text += fmt::format("On {}: {}; {} {} of {} settings{}.\n", inference.device,
                      tune::describe(best.setting), how, result.trials.size(), result.settings,
                      inference.known ? ", earlier (--again asks anew)"
                                      : fmt::format(" in {:.3g} s", result.elapsed_s));
  if (best.response.saturated) text += "It is saturated: more samples come than it answers.\n";
  return text;
}

Result<std::vector<app::ConfirmedInference>> confirm_all(app::Workplace& workplace,
                                                         const app::ConfirmRequest& request,
                                                         const std::vector<DeviceInference>& found,
                                                         core::Progress& progress,
                                                         const std::stop_token& stop) {
  std::vector<app::ConfirmedInference> confirmed;
  for (const auto& inference : found) {
    if (!inference.result.best || inference.device.starts_with("predictor:")) continue;
    auto on_device = request;
    on_device.device = inference.device;
    on_device.result = inference.result;
    FLEETFIT_ASSIGN(auto one, app::confirm_inference(workplace, on_device, progress, stop));
    confirmed.push_back(std::move(one));
  }
  return confirmed;
}

void print_all(Context& context, const std::vector<DeviceInference>& found,
               const std::vector<app::ConfirmedInference>& confirmed) {
  using core::to_json;
  nlohmann::ordered_json json = {{"inference", nlohmann::ordered_json::array()},
                                 {"confirmed", nlohmann::ordered_json::array()}};
  std::string text;
  for (const auto& one : found) {
    json["inference"].push_back(to_json(one));
    text += inference_text(one);
  }
  for (const auto& one : confirmed) {
    json["confirmed"].push_back(to_json(one));
    text += "\n" + confirmed_text(one);
  }
  context.show(json, text);
}

Result<Verdict> run_tune(Context& context, const TuneFlags& flags, const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto request, request_of(context, flags));
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  std::vector<DeviceInference> found;
  for (const auto& device : request.study.devices) {
    FLEETFIT_ASSIGN(auto one,
                    app::tune_inference_on(workplace, request, device, context.progress(), stop));
    found.push_back(std::move(one));
  }
  std::vector<app::ConfirmedInference> confirmed;
  if (flags.confirm_s > 0) {
    FLEETFIT_ASSIGN(confirmed, confirm_all(workplace,
                                           {.model = request.model,
                                            .options = request.options,
                                            .scenario = request.study.scenario,
                                            .seconds = flags.confirm_s,
                                            .seed = request.seed,
                                            .threads = request.threads,
                                            .power = request.power},
                                           found, context.progress(), stop));
  }
  print_all(context, found, confirmed);
  if (!flags.plot.empty()) {
    const auto page = app::inference_page(std::filesystem::path(flags.model).filename().string(),
                                          request.study, found, confirmed);
    FLEETFIT_TRY(core::write_file(flags.plot, page));
  }
  std::vector<std::string> slow;
  for (const auto& [device, fingerprint, structure, result, known] : found)
    if (!result.best || result.trials[*result.best].response.saturated) slow.push_back(device);
  return done_if(slow.empty(),
                 fmt::format("nothing keeps up with the scenario on {}", fmt::join(slow, ", ")));
}

void add_tune_flags(CLI::App& verb, TuneFlags& flags) {
  verb.add_option("MODEL", flags.model, "ONNX, TFLite or ncnn's .param")->required();
  verb.add_option("--device", flags.devices, "A device, or predictor:FILE; may be given again")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->default_str("local");
  verb.add_option(
      "--scenario", flags.scenario,
      "How requests come: single, offline, server:SAMPLES@PERIODms, multistream:RATEhz");
  verb.add_option("--batch", flags.batch, "Batches to choose from: 1..32 or 1,4,8");
  verb.add_option("--cores", flags.cores, "Numbers of cores to choose from; as the device has");
  verb.add_option("--infer-threads", flags.threads,
                  "Numbers of threads to choose from; as many as cores");
  verb.add_option("--precision", flags.precision, "Out of fp32,int8; as the device has");
  verb.add_option("--goal", flags.goal, "What is best")->check(CLI::IsMember(names_of(kGoals)));
  verb.add_option("--algorithm", flags.algorithm, "How settings are tried")
      ->check(CLI::IsMember(names_of(kAlgorithms)));
  verb.add_option("--seconds", flags.seconds, "Of measuring, for each setting")
      ->check(CLI::Range(0.01, 3600.0));
  verb.add_option("--confirm", flags.confirm_s, "Then serve for so many seconds for real")
      ->check(CLI::Range(0.1, 86400.0));
  verb.add_option("--watts-per-core", flags.watts_per_core,
                  "Of a busy core, where no sensor tells the energy")
      ->check(CLI::Range(0.001, 1000.0));
  verb.add_option("--dim", flags.dimensions, "NAME=N for a dimension that the file leaves open");
  verb.add_option("--plot", flags.plot, "An HTML page to write");
  verb.add_flag("--again", flags.again, "Ask anew, even if the store has the answer");
}

void add_infer_tune(CLI::App& infer, Context& context) {
  auto [verb, flags] = add_verb<TuneFlags>(
      infer, "tune", "Find the batch, cores, threads and precision that suit a scenario best");
  add_tune_flags(*verb, *flags);
  verb->footer(
      "Answers are kept in the store, for networks of the same structure on the same device. The "
      "exit status is 1 if nothing keeps up with the scenario.\n\n"
      "Example:\n  fleetfit infer tune resnet20.onnx --scenario server:32@100ms --cores 1,2\n"
      "  fleetfit infer tune m.onnx --scenario multistream:50hz --batch 1..16 --confirm 10 --plot "
      "m.html");
  context.on(verb, flags, run_tune);
}

// Not for people: fleetfit starts itself with this verb for a real run.
void add_serve(CLI::App& infer, Context& context) {
  auto* verb = infer.add_subcommand("serve", "Serve a plan that another process gives");
  verb->group("");
  verb->footer("Example:\n  fleetfit infer serve < plan.json");
  context.on(verb, []() -> Result<Verdict> {
    return app::serve_inference_plan(std::cin, std::cout).map(done);
  });
}

}  // namespace

void add_infer(CLI::App& program, Context& context) {
  auto& infer =
      add_group(program, context, "infer", "How to run a network where it is deployed",
                "Example:\n  fleetfit infer tune resnet20.onnx --scenario server:32@100ms");
  add_infer_tune(infer, context);
  add_serve(infer, context);
}

}  // namespace fleetfit::cli
