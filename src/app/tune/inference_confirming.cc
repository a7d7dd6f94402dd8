#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "app/devices/device_variants.h"
#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "app/tune/batch_runners.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/process.h"
#include "fleetfit/core/report_fields.h"

namespace fleetfit::app {
namespace {

using std::chrono::milliseconds;

// Each holds the network's weights once more.
constexpr std::size_t kMostLoaded = 12;
constexpr milliseconds kLoading{300'000};

/// The batches that the scenario forms; of many, some that are spread evenly. The largest is always
/// among them.
std::vector<std::int64_t> batches_formed(const ConfirmRequest& request,
                                         const tune::InferenceSetting& setting) {
  std::set<std::int64_t> formed;
  const auto costs = tune::batch_costs(request.result, setting);
  tune::simulate(request.scenario, setting.batch, [&](std::int64_t samples) {
    formed.insert(samples);
    return costs(samples);
  });
  // A real run may be slower for a while, and then forms full batches.
  if (request.scenario.kind != tune::ScenarioKind::single) formed.insert(setting.batch);
  std::vector<std::int64_t> all(formed.begin(), formed.end());
  if (all.size() <= kMostLoaded) return all;
  std::vector<std::int64_t> some;
  for (std::size_t i = 0; i < kMostLoaded; ++i)
    some.push_back(all[i * (all.size() - 1) / (kMostLoaded - 1)]);
  return some;
}

/// The network in all batches, as files for the device.
struct PreparedFiles {
  std::vector<ModelFiles> keep = {};  // the files live as long as these
  std::vector<std::pair<std::int64_t, std::filesystem::path>> by_batch = {};
};

Result<PreparedFiles> prepare_files(const ConfirmRequest& request, const measure::Device& device,
                                    const std::vector<std::int64_t>& batches) {
  FLEETFIT_ASSIGN(const auto model, BatchedModel::open(request.model, request.options));
  PreparedFiles prepared;
  for (const auto batch : batches) {
    FLEETFIT_ASSIGN(auto files, model.files(batch, request.threads));
    FLEETFIT_ASSIGN(const auto file, files.for_device(device));
    prepared.by_batch.emplace_back(batch, file.path);
    prepared.keep.push_back(std::move(files));
  }
  return prepared;
}

/// What a real run gave.
struct RealOutcome {
  tune::Response response = {};
  std::string energy_source = {};
  std::string energy_reason = {};
};

/// Meters the energy of what happens between the two calls.
class Metering {
 public:
  Metering(const core::Clock& clock, const measure::EnergyOptions& options)
      : opened_(measure::open_energy_meter(clock, options)) {}

  void start() { started_ = opened_.meter != nullptr && opened_.meter->start().has_value(); }

  void stop(RealOutcome& outcome) {
    outcome.energy_reason = opened_.reason;
    if (!started_) return;
    const auto taken_mj = opened_.meter->stop();
    if (!taken_mj || outcome.response.samples == 0) return;
    outcome.response.energy_mj = *taken_mj / static_cast<double>(outcome.response.samples);
    outcome.energy_source = to_string(opened_.meter->source());
  }

 private:
  measure::OpenedMeter opened_;
  bool started_ = false;
};

/// The engine in a process that has all batches loaded, under the limits of the device.
class EngineServer {
 public:
  static Result<EngineServer> start(const measure::Device& device, const Programs& programs) {
    FLEETFIT_ASSIGN(auto command, own_command(programs, {"infer", "serve"}));
    FLEETFIT_ASSIGN(auto process, core::Process::start(std::move(command),
                                                       {.environment = engine_environment()}));
    FLEETFIT_ASSIGN(auto limits, measure::apply_limits(process.pid(), device));
    return EngineServer(std::move(limits), std::move(process));
  }

  int pid() const { return process_.pid(); }

  Status tell(const std::string& line) { return process_.write(line + "\n", milliseconds(60'000)); }

  /// The next document that it says; fails with what it says went wrong.
  Result<nlohmann::json> listen(milliseconds timeout, const std::stop_token& stop) {
    FLEETFIT_ASSIGN(const auto line, next_line(timeout, stop));
    auto json = core::parse_json(line, "answer of the serving process");
    if (json && json->contains("error")) {
      return fail(ErrorCode::device_failed,
                  core::JsonView(*json, "answer").text("error").value_or("it failed"));
    }
    return json;
  }

 private:
  EngineServer(measure::AppliedLimits limits, core::Process process)
      : limits_(std::move(limits)), process_(std::move(process)) {}

  Result<std::string> next_line(milliseconds timeout, const std::stop_token& stop) {
    const auto line = process_.read_line(timeout, stop);
    if (!line && line.error().code == ErrorCode::cancelled)
      return fail(ErrorCode::cancelled, "the real run was stopped");
    FLEETFIT_TRY(line);
    if (*line) return **line;
    return fail(ErrorCode::device_failed,
                fmt::format("the serving process has ended: {}", process_.error_output()));
  }

  measure::AppliedLimits limits_;
  core::Process process_;
};

/// Where and how the real run is.
struct Place {
  Workplace& workplace;
  const ConfirmRequest& request;
  const measure::Device& device;
  std::int64_t batch = 1;
};

Result<std::string> plan_of(const Place& place, const PreparedFiles& files) {
  FLEETFIT_ASSIGN(const auto known, KernelChoices(place.workplace).known(place.device));
  const auto load = load_options(place.device);
  nlohmann::json plan = {{"scenario", tune::describe(place.request.scenario)},
                         {"batch", place.batch},
                         {"seconds", place.request.seconds},
                         {"seed", place.request.seed},
                         {"threads", load.threads},
                         {"kernels", load.kernels},
                         {"known_choices", known},
                         {"models", nlohmann::json::array()}};
  for (const auto& [batch, file] : files.by_batch)
    plan["models"].push_back({{"batch", batch}, {"file", file.string()}});
  return core::format_json_line(plan);
}

Result<RealOutcome> run_engine(const Place& place, const PreparedFiles& files,
                               const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto plan, plan_of(place, files));
  FLEETFIT_ASSIGN(auto server, EngineServer::start(place.device, place.workplace.programs));
  FLEETFIT_TRY(server.tell(plan));
  FLEETFIT_TRY(server.listen(kLoading, stop));
  const auto& power = place.request.power;
  Metering metering(place.workplace.clock,
                    {.model = power ? *power : measure::assumed_power(), .pid = server.pid()});
  metering.start();
  FLEETFIT_TRY(server.tell("go"));
  const milliseconds patience(static_cast<std::int64_t>(3000 * place.request.seconds) + 60'000);
  FLEETFIT_ASSIGN(const auto answer, server.listen(patience, stop));
  FLEETFIT_ASSIGN(const auto json,
                  core::JsonView(answer, "answer of the serving process").at("response"));
  FLEETFIT_ASSIGN(const auto response, core::read<tune::Response>(json));
  RealOutcome outcome{.response = response};
  metering.stop(outcome);
  return outcome;
}

/// Another runtime holds one model, so there is one of it for each batch.
Result<RealOutcome> run_others(const Place& place, const PreparedFiles& files,
                               const std::stop_token& stop) {
  std::vector<OpenedRuntime> limits;  // outlive the processes
  BatchRunners runners;
  for (const auto& [batch, file] : files.by_batch) {
    FLEETFIT_ASSIGN(auto opened, open_runtime(place.device, place.workplace.programs));
    FLEETFIT_TRY(opened.runtime->load(file, load_options(place.device)));
    runners.add(batch, std::move(opened.runtime));
    limits.push_back(std::move(opened));
  }
  const auto& clock = place.workplace.clock;
  FLEETFIT_TRY(runners.warm_up(clock));
  Metering metering(clock, {});
  metering.start();
  const tune::RealServer server{.clock = clock,
                                .execute = [&](std::int64_t n) { return runners.run(n); },
                                .stop = [&] { return stop.stop_requested(); }};
  FLEETFIT_ASSIGN(
      const auto response,
      tune::serve_for_real(place.request.scenario, place.batch, server,
                           {.seconds = place.request.seconds, .seed = place.request.seed}));
  if (stop.stop_requested()) return fail(ErrorCode::cancelled, "the real run was stopped");
  RealOutcome outcome{.response = response};
  metering.stop(outcome);
  return outcome;
}

Status check_request(const ConfirmRequest& request) {
  if (request.device.starts_with("predictor:")) {
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{}: what is predicted can be confirmed on the device only", request.device));
  }
  if (!request.result.best)
    return fail(ErrorCode::invalid_input, "there is no recommended setting to confirm");
  if (!(request.seconds > 0 && request.seconds <= 86'400))
    return fail(ErrorCode::invalid_input, "seconds: not in 0 to 86400");
  return {};
}

Result<measure::Device> device_for(Workplace& workplace, const ConfirmRequest& request,
                                   const tune::InferenceSetting& setting) {
  FLEETFIT_ASSIGN(const auto opened, open_device(workplace, request.device));
  FLEETFIT_ASSIGN(const auto hardware, measure::read_hardware());
  return variant_of(opened.device, hardware, setting);
}

}  // namespace

double ConfirmedInference::error() const {
  if (scenario.kind == tune::ScenarioKind::offline)
    return expected.throughput / real.throughput - 1;
  return expected.mean_ms / real.mean_ms - 1;
}

core::Fields fields_of(const ConfirmedInference*) {
  using Confirmed = ConfirmedInference;
  static constexpr core::Field kAll[] = {
      FLEETFIT_MEMBERS(Confirmed, device),
      core::computed("scenario", [](const Confirmed& c) { return tune::describe(c.scenario); }),
      core::field<&Confirmed::setting>("params"),
      FLEETFIT_MEMBERS(Confirmed, expected, real),
      core::computed<&Confirmed::error>("error"),
      core::field<&Confirmed::batches>("batches_loaded"),
      core::field<&Confirmed::energy_source>("energy_source").omit_default(),
      FLEETFIT_MEMBERS(Confirmed, notes)};
  return {.all = kAll};
}

Result<ConfirmedInference> confirm_inference(Workplace& workplace, const ConfirmRequest& request,
                                             core::Progress& progress,
                                             const std::stop_token& stop) {
  FLEETFIT_TRY(check_request(request));
  const auto& best = request.result.trials[*request.result.best];
  FLEETFIT_ASSIGN(const auto device, device_for(workplace, request, best.setting));
  const core::ProgressTask task(progress, {.name = "real run on " + request.device});
  ConfirmedInference confirmed{.device = request.device,
                               .scenario = request.scenario,
                               .setting = best.setting,
                               .expected = best.response,
                               .batches = batches_formed(request, best.setting)};
  FLEETFIT_ASSIGN(const auto files, prepare_files(request, device, confirmed.batches));
  const Place place{workplace, request, device, best.setting.batch};
  const bool engine = is_engine(device.runtime);
  const auto outcome = engine ? run_engine(place, files, stop) : run_others(place, files, stop);
  if (!outcome) return core::within("device " + request.device, outcome.error());
  confirmed.real = outcome->response;
  confirmed.energy_source = outcome->energy_source;
  if (!engine) confirmed.notes.emplace_back("times include the messages to the runtime's process");
  if (!outcome->response.energy_mj) confirmed.notes.push_back(outcome->energy_reason);
  return confirmed;
}

}  // namespace fleetfit::app
