#pragma once

#include <cstddef>

namespace fleetfit::search {

/// What the devices of a fleet take until each has its network.
struct FleetCostOptions {
  std::size_t devices = 1;
  std::size_t measurements = 10;        ///< on each device, by way of a proxy
  double seconds_per_measurement = 20;  ///< with all runs, warm-up and preparation
  double search_s = 0;                  ///< on a computer, for each device
  /// Designs measured to build a latency predictor: once, for the proxy, or for each device.
  std::size_t predictor_measurements = 5000;
};

/// In seconds of machine time, as if all were done one after the other: neither number becomes
/// smaller by doing it side by side.
struct FleetCost {
  double proxy_s = 0;           ///< one predictor, and a few measurements on each device
  double predictors_s = 0;      ///< a predictor for each device
  double each_device_s = 0;     ///< what one more device takes by way of the proxy
  double each_predictor_s = 0;  ///< what one more device takes with a predictor of its own

  /// How many times as much the predictors take.
  double ratio() const { return proxy_s > 0 ? predictors_s / proxy_s : 0; }
};

/// One Proxy's table 1 for one's own fleet.
FleetCost fleet_cost(const FleetCostOptions& options);

}  // namespace fleetfit::search
