#include "app/measure/model_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "fleetfit/measure/energy.h"
#include "fleetfit/measure/history.h"

namespace fleetfit::app {
namespace {

/// What the store holds of a device, for judging a new measurement on it.
struct DeviceHistory {
  std::vector<measure::EarlierMeasurement> measurements = {};  ///< the newest first
  measure::SessionSpread spread = {};
};

// Enough to know a device by, and quick to read before each measurement.
constexpr std::size_t kNewest = 2000;

// One that settled, but was unlike what was known, counts: else a machine that has changed for good
// would be unstable for ever.
bool settled(const store::MeasurementRecord& record) {
  if (record.status == store::MeasurementStatus::ok) return true;
  if (record.status == store::MeasurementStatus::failed) return false;
  return measure::circumstances_of(record).unlike_before;
}

/// Measurements that settled, by model hash; those of other versions of the device are others'.
Result<DeviceHistory> load_history(Workplace& workplace, const std::string& fingerprint) {
  FLEETFIT_ASSIGN(const auto records,
                  workplace.store->list_measurements(
                      {.device_fingerprint = fingerprint, .limit = kNewest, .operators = false}));
  DeviceHistory history;
  for (const auto& record : records) {
    if (!record.latency || !(record.latency->median_ms > 0) || !settled(record)) continue;
    history.measurements.push_back(
        {.model = record.model_hash,
         .median_ms = record.latency->median_ms,
         .ci95_ms = {record.latency->ci95_ms.low, record.latency->ci95_ms.high},
         .started = record.started});
  }
  history.spread = measure::session_spread(history.measurements);
  return history;
}

/// One model on all devices.
class ModelSession {
 public:
  ModelSession(Workplace& workplace, const SessionOptions& options, ModelFiles& files,
               std::vector<OpenedDevice> devices)
      : workplace_(workplace), options_(options), files_(files), devices_(std::move(devices)) {}

  Result<std::vector<MeasuredModel>> measure(const std::string& hash, const std::stop_token& stop) {
    FLEETFIT_TRY(prepare());
    for (const auto& group : groups()) {
      std::vector<measure::Subject> together;
      for (const std::size_t s : group) together.push_back(subjects_[s]);
      const auto outcome = measure::measure_interleaved(together, options_.protocol,
                                                        {.clock = workplace_.clock, .stop = stop});
      for (std::size_t i = 0; i < group.size(); ++i) take(outcome, i, group);
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      FLEETFIT_TRY(finish(d, hash));
    }
    return std::move(results_);
  }

 private:
  Status prepare() {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      auto& result = results_.emplace_back(MeasuredModel{.model = files_.source().string()});
      if (d > 0) result.against_first = measure::Comparison{};
      FLEETFIT_TRY(add_subject(d));
    }
    return {};
  }

  /// A model that cannot be brought into the form that the device takes has failed there.
  Status add_subject(std::size_t d) {
    const auto& device = devices_[d];
    const auto file = files_.for_device(device.device);
    if (!file) {
      results_[d].measurement =
          measure::failed_measurement(options_.protocol, workplace_.clock, file.error().message);
      return {};
    }
    auto load = load_options(device.device);
    FLEETFIT_ASSIGN(load.known_choices, options_.choices.known(device.device));
    auto meter = measure::open_energy_meter(workplace_.clock,
                                            {.model = options_.power, .pid = *device.opened.pid});
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
    if (!notes_[s].empty()) {
      auto circumstances = measure::circumstances_of(result.measurement);
      circumstances.notes.insert(circumstances.notes.begin(), notes_[s]);
      measure::keep_circumstances(result.measurement, circumstances);
    }
    // The comparisons are with the first subject, which is the first device unless that failed.
    if (result.against_first && device_of_[group.front()] == 0)
      result.against_first = outcome.against_first[i];
  }

  Status finish(std::size_t d, const std::string& hash) {
    auto& measurement = results_[d].measurement;
    measurement.model_hash = hash;
    measurement.model_name = files_.source().stem().string();
    measurement.device = devices_[d].device.name;
    measurement.device_fingerprint = devices_[d].fingerprint;
    FLEETFIT_ASSIGN(const auto history, load_history(workplace_, devices_[d].fingerprint));
    measure::compare_with_history(measurement, hash, history.measurements, history.spread);
    return options_.choices.save(devices_[d].device, measurement);
  }

  Workplace& workplace_;
  const SessionOptions& options_;
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
         measured.measurement.reason == measure::kCancelled;
}

}  // namespace

Status check_devices(const std::vector<std::string>& names) {
  if (names.empty()) return fail(ErrorCode::invalid_input, "there is no device");
  std::set<std::string_view> seen;
  for (const auto& device : names) {
    if (seen.insert(device).second) continue;
    return fail(ErrorCode::invalid_input, fmt::format("the device {} is given twice", device));
  }
  return {};
}

Result<std::vector<OpenedDevice>> open_devices(Workplace& workplace,
                                               const std::vector<std::string>& names,
                                               const measure::Protocol& protocol) {
  const auto timeouts = measure::answers_within(protocol.max_time_s);
  std::vector<OpenedDevice> devices;
  for (const auto& name : names) {
    FLEETFIT_ASSIGN(auto device, open_device(workplace, name, timeouts));
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<MeasuredModel>> measure_on_devices(Workplace& workplace,
                                                      const SessionOptions& options,
                                                      ModelFiles& files,
                                                      std::vector<OpenedDevice> devices,
                                                      const std::stop_token& stop) {
  FLEETFIT_ASSIGN(const auto hash, files.hash());
  return ModelSession(workplace, options, files, std::move(devices)).measure(hash, stop);
}

Status keep_measurements(Workplace& workplace, const ModelFiles& files,
                         std::span<const MeasuredModel> results) {
  std::vector<measure::Measurement> records;
  for (const auto& result : results) {
    if (!was_cancelled(result)) records.push_back(result.measurement);
  }
  if (records.empty()) return {};
  const store::ModelRecord model{.hash = records[0].model_hash,
                                 .name = records[0].model_name,
                                 .source = files.origin(),
                                 .bytes = static_cast<std::int64_t>(files.bytes())};
  FLEETFIT_TRY(workplace.store->save_model(model));
  return workplace.store->add_measurements(records).map([](const auto&) {});
}

}  // namespace fleetfit::app
