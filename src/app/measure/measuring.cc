#include "fleetfit/app/measuring.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/measure/model_session.h"
#include "fleetfit/core/fields.h"

namespace fleetfit::app {
namespace {

Status check_request(const MeasureRequest& request) {
  if (request.models.empty()) return fail(ErrorCode::invalid_input, "there is no model to measure");
  FLEETFIT_TRY(check_devices(request.devices));
  return check(request.protocol);
}

/// What becomes of a model when a device cannot be opened any more.
std::vector<MeasuredModel> failed_everywhere(const MeasureRequest& request, const ModelFiles& files,
                                             const core::Clock& clock, const Error& error) {
  std::vector<MeasuredModel> results;
  for (const auto& device : request.devices) {
    auto& result = results.emplace_back();
    result.model = files.source().string();
    result.measurement = measure::failed_measurement(request.protocol, clock, error.message);
    result.measurement.device = device;
  }
  return results;
}

Result<std::vector<MeasuredModel>> measure_one(Workplace& workplace, const SessionOptions& options,
                                               ModelFiles& files, std::vector<OpenedDevice> devices,
                                               const std::stop_token& stop) {
  auto results = measure_on_devices(workplace, options, files, std::move(devices), stop);
  if (!results) return results;
  FLEETFIT_TRY(keep_measurements(workplace, files, *results));
  return results;
}

using Json = nlohmann::ordered_json;

/// What stands under these keys.
template <class From>
void copy(const From& from, std::initializer_list<const char*> keys, Json& into) {
  for (const char* key : keys) into[key] = from.at(key);
}

Json comparison_json(const std::optional<measure::Comparison>& comparison) {
  if (!comparison || comparison->rounds == 0) return {};
  return {{"ratio", comparison->ratio},
          {"ci95", {comparison->ci95.low, comparison->ci95.high}},
          {"rounds", comparison->rounds}};
}

}  // namespace

Result<std::vector<MeasuredModel>> measure_models(Workplace& workplace,
                                                  const MeasureRequest& request,
                                                  core::Progress& progress,
                                                  const std::stop_token& stop) {
  FLEETFIT_TRY(check_request(request));
  std::vector<ModelFiles> models;
  for (const auto& file : request.models) {
    FLEETFIT_ASSIGN(auto files, ModelFiles::open(file, request.options, request.threads));
    models.push_back(std::move(files));
  }
  core::ProgressTask task(progress, {.name = "measure", .total = models.size(), .unit = "models"});
  KernelChoices choices(workplace);
  const SessionOptions options{request.protocol, request.power, choices};
  std::vector<MeasuredModel> all;
  for (auto& files : models) {
    if (stop.stop_requested()) break;
    // Each model has processes of its own, as the peak of memory is that of a process.
    auto devices = open_devices(workplace, request.devices, request.protocol);
    if (!devices && !all.empty() && stop.stop_requested()) break;
    if (!devices && all.empty()) return tl::unexpected(std::move(devices.error()));
    FLEETFIT_ASSIGN(auto results,
                    devices ? measure_one(workplace, options, files, *std::move(devices), stop)
                            : failed_everywhere(request, files, workplace.clock, devices.error()));
    std::ranges::move(results, std::back_inserter(all));
    task.advance();
  }
  return all;
}

Result<measure::Measurement> read_measured(const core::JsonView& measured) {
  FLEETFIT_ASSIGN(auto measurement, measure::measurement_from_json(measured));
  measurement.model_name = std::filesystem::path(measurement.model_name).stem().string();
  return measurement;
}

Json to_json(const MeasuredModel& measured) {
  const auto all = measure::to_json(measured.measurement);
  Json json{{"model", measured.model}};
  copy(all,
       {"hash", "device", "device_fingerprint", "status", "reason", "latency_ms", "runs",
        "overhead_ms", "peak_memory_bytes", "energy_mj"},
       json);
  json["energy_meter"] = measured.energy_meter;
  if (all.at("protocol").value("operators", false)) json["ops"] = all.value("ops", Json::array());
  if (measured.against_first) json["against_first"] = comparison_json(measured.against_first);
  copy(all,
       {"notes", "warmup_runs", "outliers", "drift", "bimodal", "unlike_before", "conditions",
        "protocol", "started"},
       json);
  return json;
}

Json to_json(const std::vector<MeasuredModel>& measured) {
  Json list = Json::array();
  for (const auto& one : measured) list.push_back(to_json(one));
  return list;
}

Json to_json(const MeasuredDesign& measured) {
  const auto all = core::to_json(measured.record);
  Json json;
  copy(all, {"model", "space"}, json);
  json["number"] = measured.number;
  copy(all, {"design", "hash", "device", "device_fingerprint"}, json);
  json["known"] = measured.known;
  copy(all,
       {"status", "reason", "latency_ms", "runs", "overhead_ms", "peak_memory_bytes", "energy_mj"},
       json);
  if (all.contains("ops")) json["ops"] = all.at("ops");
  return json;
}

Json to_json(const std::vector<MeasuredDesign>& measured) {
  Json list = Json::array();
  for (const auto& one : measured) list.push_back(to_json(one));
  return list;
}

Json to_json(const ExportSummary& summary) {
  return {{"output", summary.output}, {"rows", summary.rows}, {"devices", summary.devices}};
}

}  // namespace fleetfit::app
