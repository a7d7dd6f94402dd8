#include "fleetfit/search/fleet_cost.h"

namespace fleetfit::search {

FleetCost fleet_cost(const FleetCostOptions& options) {
  const double each = options.seconds_per_measurement;
  const auto devices = static_cast<double>(options.devices);
  const double predictor_s = static_cast<double>(options.predictor_measurements) * each;
  FleetCost cost;
  cost.each_device_s = static_cast<double>(options.measurements) * each + options.search_s;
  cost.each_predictor_s = predictor_s + options.search_s;
  cost.proxy_s = predictor_s + devices * cost.each_device_s;
  cost.predictors_s = devices * cost.each_predictor_s;
  return cost;
}

}  // namespace fleetfit::search
