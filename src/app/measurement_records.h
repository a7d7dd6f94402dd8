#pragma once

#include "fleetfit/app/measuring.h"
#include "fleetfit/store/records.h"

namespace fleetfit::app {

/// The measurement as it is kept.
store::MeasurementRecord to_record(const MeasuredModel& measured);

}  // namespace fleetfit::app
