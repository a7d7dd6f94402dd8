#include "fleetfit/app/measuring.h"

#include <algorithm>
#include <utility>

#include "app/measure/model_session.h"

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
    auto devices = open_devices(workplace, request.devices);
    if (!devices && all.empty()) return tl::unexpected(std::move(devices.error()));
    FLEETFIT_ASSIGN(auto results,
                    devices ? measure_one(workplace, options, files, *std::move(devices), stop)
                            : failed_everywhere(request, files, workplace.clock, devices.error()));
    std::ranges::move(results, std::back_inserter(all));
    task.advance();
  }
  return all;
}

}  // namespace fleetfit::app
