#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/core/time.h"
#include "fleetfit/measure/conditions.h"
#include "fleetfit/measure/energy.h"
#include "fleetfit/measure/protocol.h"
#include "fleetfit/measure/runtime.h"
#include "fleetfit/measure/series.h"
#include "fleetfit/records/measurement.h"

namespace fleetfit::measure {

using records::Latency;
using records::MeasurementStatus;

/// What was found out about one model on one device. A failure is a record as well.
struct Measurement {
  MeasurementStatus status = MeasurementStatus::failed;
  std::string reason = {};                        ///< why not `ok`; "" if it is
  std::optional<Latency> latency = std::nullopt;  ///< nothing if failed
  std::int64_t runs = 0;
  std::int64_t warmup_runs = 0;
  std::int64_t outliers = 0;
  Drift drift = {};
  /// Runs fall into two groups, as those of a throttled process do. The median then says which
  /// group is larger; the mean says what a run costs.
  bool bimodal = false;
  bool unlike_before = false;  ///< it settled, but is unstable for what was measured before

  /// Mean time of each operator in profiled runs: the mean of each profiled request, and the
  /// median of these over the requests, so that a request that was disturbed does not count.
  std::vector<OperatorTime> operators = {};
  /// What the runtime takes between operators: the median of whole runs, profiled ones or others,
  /// whichever are faster, less the sum of the operators, at least 0. Sum and overhead together are
  /// about the median of unprofiled runs; if they are more than 10 % away, a note says so. Nothing
  /// without operators.
  std::optional<double> overhead_ms = std::nullopt;

  std::int64_t peak_memory_bytes = 0;           ///< of the runtime's process; 0 if unknown
  std::optional<Energy> energy = std::nullopt;  ///< of one run, idle power included
  std::string kernel_choices = {};              ///< `LoadedModel::choices`
  std::vector<std::string> notes = {};          ///< what a reader should know, one sentence each
  Conditions conditions = {};
  Protocol protocol = {};
  core::Time started = {};
};
core::Fields fields_of(const Measurement*);

/// Keys as in the contract of `fleetfit measure`: "latency_ms", "energy_mj", "ops", …
nlohmann::json to_json(const Measurement& measurement);

/// Reads what `to_json` wrote. Errors name the field.
Result<Measurement> measurement_from_json(const core::JsonView& json);

}  // namespace fleetfit::measure
