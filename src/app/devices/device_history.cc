#include "app/devices/device_history.h"

namespace fleetfit::app {
namespace {

// Enough to know a device by, and quick to read before each measurement.
constexpr std::size_t kNewest = 2000;

// One that settled, but was unlike what was known, counts: else a machine that has changed for good
// would be unstable for ever.
bool settled(const store::MeasurementRecord& record) {
  if (record.status == store::MeasurementStatus::ok) return true;
  if (record.status == store::MeasurementStatus::failed) return false;
  return measure::circumstances_of(record).unlike_before;
}

}  // namespace

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

}  // namespace fleetfit::app
