#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/statistics.h"
#include "fleetfit/core/time.h"

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

/// A model measured on a device, or the attempt. It repeats what it needs of device and model, so
/// that it stays true when these are changed or removed. A number that is not known is absent.
struct Measurement {
  std::int64_t id = 0;                  ///< given by the store when added; never used twice
  std::string device = {};              ///< the device's name; not empty
  std::string device_fingerprint = {};  ///< as it was when measured
  std::string model_hash = {};
  std::string model_name = {};
  std::optional<std::string> space = {};   ///< if the model is a design of a space
  std::optional<std::string> design = {};  ///< the design's text in that space
  MeasurementStatus status = MeasurementStatus::ok;
  std::string reason = {};              ///< why it is not ok; then it is not empty
  std::optional<Latency> latency = {};  ///< there if it is ok; nothing if it failed
  std::int64_t runs = 0;                ///< that the numbers come from
  /// What the runtime takes between operators: the median of whole runs, profiled ones or others,
  /// whichever are faster, less the sum of the operators, at least 0. Sum and overhead together are
  /// about the median of unprofiled runs; if they are more than 10 % away, a note says so. Nothing
  /// without operators.
  std::optional<double> overhead_ms = {};
  std::optional<std::int64_t> peak_memory_bytes = {};  ///< of the runtime's process
  std::optional<Energy> energy = {};
  std::string protocol = "{}";    ///< JSON: how it was measured
  std::string conditions = "{}";  ///< JSON: frequency, load, drift, … while it was measured
  core::Time started = {};
  /// In the order of execution; empty if not asked for. The time is the mean over each profiled
  /// request, and the median of these over the requests, so that one that was disturbed does not
  /// count.
  std::vector<OperatorTime> operators = {};
  std::string kernel_choices = {};  ///< of the runtime, which neither stores nor messages have

  bool operator==(const Measurement&) const = default;
};
core::Fields fields_of(const Measurement*);

}  // namespace fleetfit::records
