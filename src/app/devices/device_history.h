#pragma once

#include <string>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/history.h"

namespace fleetfit::app {

/// What the store holds of a device, for judging a new measurement on it.
struct DeviceHistory {
  std::vector<measure::EarlierMeasurement> measurements = {};  ///< the newest first
  measure::SessionSpread spread = {};
};

/// Measurements that settled, by model hash; those of other versions of the device are others'.
Result<DeviceHistory> load_history(Workplace& workplace, const std::string& fingerprint);

}  // namespace fleetfit::app
