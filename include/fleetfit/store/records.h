#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/result.h"

/// What is kept. Plain values: they know neither how they came about nor where they are stored. A
/// number that is not known is absent, never zero or negative. Texts are UTF-8 without NUL, numbers
/// finite, and fields called JSON hold the text of one JSON object.
namespace fleetfit::store {

/// A date with the precision that is kept.
using Time = std::chrono::sys_time<std::chrono::milliseconds>;

/// A device that the user has named.
struct DeviceRecord {
  std::string name = {};         ///< not empty; there is one device of a name
  std::string fingerprint = {};  ///< differs if anything differs that changes its speed
  std::string settings = "{}";   ///< JSON: runtime, threads, cores, precision, limits
  Time created = {};

  bool operator==(const DeviceRecord&) const = default;
};

/// A model file, known by its content.
struct ModelRecord {
  std::string hash = {};    ///< of the content; not empty; there is one model of a hash
  std::string name = {};    ///< for people
  std::string source = {};  ///< where it was found: a path, "zoo:resnet18", …
  std::int64_t bytes = 0;   ///< size of the file

  bool operator==(const ModelRecord&) const = default;
};

enum class MeasurementStatus {
  ok,
  unstable,  ///< it did not settle; the numbers are what was seen
  failed,    ///< there are no numbers, or they mean nothing
};

/// "ok", "unstable" or "failed".
std::string_view to_string(MeasurementStatus status);

/// The status of that name; `invalid_input` if there is none.
Result<MeasurementStatus> parse_measurement_status(std::string_view name);

enum class EnergySource {
  measured,  ///< by a meter
  modelled,  ///< worked out from a power table
};

/// "measured" or "modelled".
std::string_view to_string(EnergySource source);

/// The source of that name; `invalid_input` if there is none.
Result<EnergySource> parse_energy_source(std::string_view name);

/// The time of one inference, over the runs of a measurement.
struct Latency {
  double median_ms = 0;
  double mean_ms = 0;
  double p90_ms = 0;
  double p99_ms = 0;
  double ci95_low_ms = 0;  ///< 95 % interval of the median, from session to session
  double ci95_high_ms = 0;

  bool operator==(const Latency&) const = default;
};

/// The energy of one inference.
struct Energy {
  double mj = 0;
  EnergySource source = EnergySource::measured;

  bool operator==(const Energy&) const = default;
};

/// The time of one operator in one inference.
struct OperatorRecord {
  std::string name = {};    ///< the node in the model
  std::string type = {};    ///< e.g. "Conv"
  std::string kernel = {};  ///< what ran, in the runtime's own words; may be empty
  double ms = 0;

  bool operator==(const OperatorRecord&) const = default;
};

/// A model measured on a device, or the attempt. It repeats what it needs of device and model, so
/// that it stays true when these are changed or removed.
struct MeasurementRecord {
  std::int64_t id = 0;                  ///< given by the store when added; never used twice
  std::string device = {};              ///< the device's name; not empty
  std::string device_fingerprint = {};  ///< as it was when measured
  std::string model_hash = {};
  std::string model_name = {};
  std::optional<std::string> space = {};   ///< if the model is a design of a space
  std::optional<std::string> design = {};  ///< the design's text in that space
  MeasurementStatus status = MeasurementStatus::ok;
  std::string reason = {};                 ///< why it is not ok; then it is not empty
  std::optional<Latency> latency = {};     ///< there if it is ok
  std::int64_t runs = 0;                   ///< that the numbers come from
  std::optional<double> overhead_ms = {};  ///< of an inference, outside of all operators
  std::optional<std::int64_t> peak_memory_bytes = {};
  std::optional<Energy> energy = {};
  std::string protocol = "{}";    ///< JSON: how it was measured
  std::string conditions = "{}";  ///< JSON: frequency, load, drift, … while it was measured
  Time started = {};
  std::vector<OperatorRecord> operators =
      {};  ///< in the order of execution; empty if not asked for

  bool operator==(const MeasurementRecord&) const = default;
};

/// Which kernel was the fastest for a piece of work on a kind of CPU.
struct KernelChoiceRecord {
  std::string cpu = {};           ///< identity of the CPU; not empty
  std::string key = {};           ///< the work: shape, layout, threads, type; not empty
  std::string choice = {};        ///< the kernel, in the engine's own words
  std::optional<double> ms = {};  ///< its time
  Time measured = {};             ///< when

  bool operator==(const KernelChoiceRecord&) const = default;
};

}  // namespace fleetfit::store
