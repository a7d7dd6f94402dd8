#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fleetfit/core/clock.h"
#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/conditions.h"
#include "fleetfit/measure/protocol.h"
#include "fleetfit/measure/series.h"
#include "fleetfit/records/measurement.h"

/// What was found out about one model on one device, and how that went. A failure is a record as
/// well.
namespace fleetfit::measure {

using records::Latency;
using records::Measurement;
using records::MeasurementStatus;

/// How measuring went, beside its numbers.
struct Circumstances {
  std::int64_t warmup_runs = 0;
  std::int64_t outliers = 0;
  Drift drift = {};
  /// Runs fall into two groups, as those of a throttled process do. The median then says which
  /// group is larger; the mean says what a run costs.
  bool bimodal = false;
  bool unlike_before = false;  ///< it settled, but is unstable for what was measured before
  std::vector<std::string> notes = {};  ///< what a reader should know, one sentence each
  Conditions conditions = {};
};
core::Fields fields_of(const Circumstances*);

/// What the measurement's `conditions` say; where they say nothing, what is so by default.
Circumstances circumstances_of(const Measurement& measurement);

/// Puts them into `conditions`, with the interval of this session, which stores do not keep.
void keep_circumstances(Measurement& measurement, const Circumstances& circumstances);

/// What becomes of a model that cannot even be tried.
Measurement failed_measurement(const Protocol& protocol, const core::Clock& clock,
                               std::string reason);

/// As it is sent: keys as in the contract of `fleetfit measure`: "latency_ms", "energy_mj", "ops",
/// …, those of its circumstances among them.
nlohmann::json to_json(const Measurement& measurement);

/// Reads what `to_json` wrote, but for what its receiver knows better: the id, the space and the
/// design. Errors name the field.
Result<Measurement> measurement_from_json(const core::JsonView& json);

}  // namespace fleetfit::measure
