#include "fleetfit/app/measuring.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "app/device_history.h"
#include "app/kernel_choices.h"
#include "app/measurement_records.h"
#include "app/model_files.h"
#include "app/opened_device.h"
#include "fleetfit/measure/energy.h"

namespace fleetfit::app {
namespace {

constexpr std::string_view kCancelled = "cancelled";

Status check_request(const MeasureRequest& request) {
  if (request.models.empty()) return fail(ErrorCode::invalid_input, "there is no model to measure");
  if (request.devices.empty()) return fail(ErrorCode::invalid_input, "there is no device");
  std::set<std::string_view> seen;
  for (const auto& device : request.devices) {
    if (seen.insert(device).second) continue;
    return fail(ErrorCode::invalid_input, fmt::format("the device {} is given twice", device));
  }
  return check(request.protocol);
}

Result<std::vector<OpenedDevice>> open_devices(Workplace& workplace,
                                               const std::vector<std::string>& names) {
  std::vector<OpenedDevice> devices;
  for (const auto& name : names) {
    auto device = open_device(workplace, name);
    if (!device) return tl::unexpected(std::move(device.error()));
    devices.push_back(*std::move(device));
  }
  return devices;
}

measure::Measurement failed_measurement(const MeasureRequest& request, const core::Clock& clock,
                                        std::string reason) {
  measure::Measurement failed{.reason = std::move(reason)};
  failed.protocol = request.protocol;
  failed.started = clock.date();
  return failed;
}

/// What becomes of a model when a device cannot be opened any more.
std::vector<MeasuredModel> failed_everywhere(const MeasureRequest& request, const ModelFiles& files,
                                             const core::Clock& clock, const Error& error) {
  std::vector<MeasuredModel> results;
  for (const auto& device : request.devices) {
    results.push_back({.model = files.source().string(),
                       .device = device,
                       .measurement = failed_measurement(request, clock, error.message)});
  }
  return results;
}

/// One model on all devices.
class ModelSession {
 public:
  ModelSession(Workplace& workplace, const MeasureRequest& request, ModelFiles& files,
               std::vector<OpenedDevice> devices)
      : workplace_(workplace), request_(request), files_(files), devices_(std::move(devices)) {}

  Result<std::vector<MeasuredModel>> measure(const std::string& hash, const std::stop_token& stop) {
    if (auto ok = prepare(hash); !ok) return tl::unexpected(std::move(ok.error()));
    for (const auto& group : groups()) {
      std::vector<measure::Subject> together;
      for (const std::size_t s : group) together.push_back(subjects_[s]);
      const auto outcome = measure::measure_interleaved(together, request_.protocol,
                                                        {.clock = workplace_.clock, .stop = stop});
      for (std::size_t i = 0; i < group.size(); ++i) take(outcome, i, group);
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (auto ok = finish(d); !ok) return tl::unexpected(std::move(ok.error()));
    }
    return std::move(results_);
  }

 private:
  Status prepare(const std::string& hash) {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      const auto& device = devices_[d];
      auto& result = results_.emplace_back(MeasuredModel{.model = files_.source().string(),
                                                         .hash = hash,
                                                         .device = device.device.name,
                                                         .device_fingerprint = device.fingerprint});
      if (d > 0) result.against_first = measure::Comparison{};
      if (auto ok = add_subject(d); !ok) return ok;
    }
    return {};
  }

  /// A model that cannot be brought into the form that the device takes has failed there.
  Status add_subject(std::size_t d) {
    const auto& device = devices_[d];
    const auto file = files_.for_device(device.device);
    if (!file) {
      results_[d].measurement =
          failed_measurement(request_, workplace_.clock, file.error().message);
      return {};
    }
    auto load = load_options(device.device);
    auto known = known_choices(workplace_, device.device);
    if (!known) return tl::unexpected(std::move(known.error()));
    load.known_choices = *std::move(known);
    auto meter = measure::open_energy_meter(workplace_.clock,
                                            {.model = request_.power, .pid = *device.opened.pid});
    results_[d].energy_meter = std::move(meter.reason);
    notes_.push_back(file->note);
    meters_.push_back(std::move(meter.meter));
    device_of_.push_back(d);
    subjects_.push_back({.runtime = device.runtime(),
                         .model = file->path,
                         .load = std::move(load),
                         .energy = meters_.back().get()});
    return {};
  }

  /// Subjects that are measured in turns. One with a share of CPU time is measured alone: while it
  /// waits for its turn it saves up time, and would never be stopped.
  std::vector<std::vector<std::size_t>> groups() const {
    std::vector<std::vector<std::size_t>> groups(1);
    for (std::size_t s = 0; s < subjects_.size(); ++s) {
      const auto& limits = devices_[device_of_[s]].device.limits;
      if (limits.cpu_quota_percent) {
        groups.push_back({s});
      } else {
        groups.front().push_back(s);
      }
    }
    if (groups.front().empty()) groups.erase(groups.begin());
    return groups;
  }

  void take(const measure::Interleaved& outcome, std::size_t i,
            const std::vector<std::size_t>& group) {
    const std::size_t s = group[i];
    auto& result = results_[device_of_[s]];
    result.measurement = outcome.measurements[i];
    if (!notes_[s].empty())
      result.measurement.notes.insert(result.measurement.notes.begin(), notes_[s]);
    // The comparisons are with the first subject, which is the first device unless that failed.
    if (result.against_first && device_of_[group.front()] == 0)
      result.against_first = outcome.against_first[i];
  }

  Status finish(std::size_t d) {
    auto& result = results_[d];
    const auto history = load_history(workplace_, devices_[d].fingerprint);
    if (!history) return tl::unexpected(history.error());
    measure::compare_with_history(result.measurement, result.hash, history->measurements,
                                  history->spread);
    return save_choices(workplace_, devices_[d].device, result.measurement);
  }

  Workplace& workplace_;
  const MeasureRequest& request_;
  ModelFiles& files_;
  std::vector<OpenedDevice> devices_;
  std::vector<MeasuredModel> results_;
  // For each subject; a device that the model cannot be prepared for has none.
  std::vector<measure::Subject> subjects_;
  std::vector<std::size_t> device_of_;
  std::vector<std::string> notes_;
  std::vector<std::unique_ptr<measure::EnergyMeter>> meters_;
};

bool was_cancelled(const MeasuredModel& measured) {
  return measured.measurement.status == measure::MeasurementStatus::failed &&
         measured.measurement.reason == kCancelled;
}

Status keep(Workplace& workplace, const ModelFiles& files, std::span<const MeasuredModel> results) {
  std::vector<store::MeasurementRecord> records;
  for (const auto& result : results) {
    if (!was_cancelled(result)) records.push_back(to_record(result));
  }
  if (records.empty()) return {};
  const store::ModelRecord model{.hash = records[0].model_hash,
                                 .name = records[0].model_name,
                                 .source = std::filesystem::absolute(files.source()).string(),
                                 .bytes = static_cast<std::int64_t>(files.bytes())};
  if (auto ok = workplace.store->save_model(model); !ok) return ok;
  return workplace.store->add_measurements(records).map([](const auto&) {});
}

Result<std::vector<MeasuredModel>> measure_one(Workplace& workplace, const MeasureRequest& request,
                                               ModelFiles& files, std::vector<OpenedDevice> devices,
                                               const std::stop_token& stop) {
  const auto hash = files.hash();
  if (!hash) return tl::unexpected(hash.error());
  ModelSession session(workplace, request, files, std::move(devices));
  auto results = session.measure(*hash, stop);
  if (!results) return results;
  if (auto ok = keep(workplace, files, *results); !ok) return tl::unexpected(std::move(ok.error()));
  return results;
}

}  // namespace

Result<std::vector<MeasuredModel>> measure_models(Workplace& workplace,
                                                  const MeasureRequest& request,
                                                  core::Progress& progress,
                                                  const std::stop_token& stop) {
  if (auto ok = check_request(request); !ok) return tl::unexpected(std::move(ok.error()));
  std::vector<ModelFiles> models;
  for (const auto& file : request.models) {
    auto files = ModelFiles::open(file, request.options, request.threads);
    if (!files) return tl::unexpected(std::move(files.error()));
    models.push_back(*std::move(files));
  }
  core::ProgressTask task(progress, {.name = "measure", .total = models.size(), .unit = "models"});
  std::vector<MeasuredModel> all;
  for (auto& files : models) {
    if (stop.stop_requested()) break;
    // Each model has processes of its own, as the peak of memory is that of a process.
    auto devices = open_devices(workplace, request.devices);
    if (!devices && all.empty()) return tl::unexpected(std::move(devices.error()));
    auto results = devices ? measure_one(workplace, request, files, *std::move(devices), stop)
                           : failed_everywhere(request, files, workplace.clock, devices.error());
    if (!results) return tl::unexpected(std::move(results.error()));
    std::ranges::move(*results, std::back_inserter(all));
    task.advance();
  }
  return all;
}

}  // namespace fleetfit::app
