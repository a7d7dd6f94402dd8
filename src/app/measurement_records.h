#pragma once

#include <vector>

#include "fleetfit/app/measuring.h"
#include "fleetfit/store/records.h"

namespace fleetfit::app {

/// The measurement as it is kept.
store::MeasurementRecord to_record(const MeasuredModel& measured);

/// Whether the record answers such a request, so that the model need not be measured again: it has
/// numbers, and those of operators if they are asked for.
bool answers(const store::MeasurementRecord& record, const measure::Protocol& protocol);

/// Of several measurements of one model, newest first, the fastest, as what disturbs a session
/// makes it slower; of equals the newest. All have a latency, and there is one at least.
store::MeasurementRecord least_disturbed_of(std::vector<store::MeasurementRecord> records);

}  // namespace fleetfit::app
