#pragma once

#include <cstdint>
#include <string>

#include "fleetfit/core/names.h"
#include "fleetfit/core/statistics.h"

namespace fleetfit::core {
struct Fields;
}

/// What was measured, as it is found, kept and sent.
namespace fleetfit::records {

using core::to_string;

enum class MeasurementStatus : std::uint8_t {
  ok,        ///< the median's interval reached the target, without drift
  unstable,  ///< it did not in the time given, or it is unlike earlier ones; the numbers are those
             ///< of all runs
  failed,    ///< there are no numbers, or they mean nothing
};
core::Names names_of(MeasurementStatus);

enum class EnergySource : std::uint8_t {
  measured,  ///< by a meter
  modelled,  ///< worked out from a power table
};
core::Names names_of(EnergySource);

/// The time of one inference, over all measured runs, without warm-up, outliers included.
struct Latency {
  double median_ms = 0;
  double mean_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
  /// Of the median that another session would find (measure/history.h); of one session alone where
  /// nothing is known of others.
  core::Interval ci95_ms = {};
  /// Of the median, by the runs of this session alone, and of the mean. Stores do not keep them.
  core::Interval session_ci95_ms = {};
  core::Interval mean_ci95_ms = {};

  bool operator==(const Latency&) const = default;
};
core::Fields fields_of(const Latency*);

/// The energy of one inference, idle power included.
struct Energy {
  double mj = 0;
  EnergySource source = EnergySource::measured;
  std::string meter = {};  ///< which one, e.g. "RAPL package-0"; stores do not keep it

  bool operator==(const Energy&) const = default;
};
core::Fields fields_of(const Energy*);

/// The time of one operator in one inference.
struct OperatorTime {
  std::string name = {};    ///< the node in the model file; fused ones are joined by "+"
  std::string type = {};    ///< the operator's type, e.g. "Conv"
  std::string kernel = {};  ///< what ran, in the runtime's own words; may be ""
  double ms = 0;            ///< mean over the runs

  bool operator==(const OperatorTime&) const = default;
};
core::Fields fields_of(const OperatorTime*);

}  // namespace fleetfit::records
