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

/// How many sessions share the time of a whole measurement, of which the record is one.
int sessions_shared_by(const store::MeasurementRecord& record);

/// Whether the two fastest of several sessions are within twice the target of each other. There are
/// two at least.
bool fastest_agree(std::vector<double> median_ms, double target);

/// What several sessions of one model, newest first, say together: the fastest of them, as what
/// disturbs a session makes it slower; of equals the newest. Each operator has its least time, and
/// the status tells whether the two fastest agree. All have a latency, and there is one at least.
store::MeasurementRecord merge_sessions(std::vector<store::MeasurementRecord> sessions,
                                        double target);

}  // namespace fleetfit::app
