#include "fleetfit/store/store.h"

namespace fleetfit::store {

Result<std::int64_t> Store::add_measurement(const MeasurementRecord& measurement) {
  return add_measurements(std::span(&measurement, 1)).map([](const auto& ids) {
    return ids.front();
  });
}

}  // namespace fleetfit::store
