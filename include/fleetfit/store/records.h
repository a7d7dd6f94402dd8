#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleetfit/core/names.h"
#include "fleetfit/core/time.h"
#include "fleetfit/records/measurement.h"

namespace fleetfit::core {
struct Fields;
}

/// What is kept. Plain values: they know neither how they came about nor where they are stored. A
/// number that is not known is absent, never zero or negative. Texts are UTF-8 without NUL, numbers
/// finite, and fields called JSON hold the text of one JSON object.
namespace fleetfit::store {

using core::Time;
using core::to_string;
using records::Energy;
using records::EnergySource;
using records::Latency;
using records::MeasurementStatus;
using records::OperatorTime;

/// A device that the user has named.
struct DeviceRecord {
  std::string name = {};         ///< not empty; there is one device of a name
  std::string fingerprint = {};  ///< differs if anything differs that changes its speed
  std::string settings = "{}";   ///< JSON: runtime, threads, cores, precision, limits
  Time created = {};

  bool operator==(const DeviceRecord&) const = default;
};
core::Fields fields_of(const DeviceRecord*);

/// A model file, known by its content.
struct ModelRecord {
  std::string hash = {};    ///< of the content; not empty; there is one model of a hash
  std::string name = {};    ///< for people
  std::string source = {};  ///< where it was found: a path, "zoo:resnet18", …
  std::int64_t bytes = 0;   ///< size of the file

  bool operator==(const ModelRecord&) const = default;
};
core::Fields fields_of(const ModelRecord*);

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
  std::vector<OperatorTime> operators = {};  ///< in the order of execution; empty if not asked for

  bool operator==(const MeasurementRecord&) const = default;
};
core::Fields fields_of(const MeasurementRecord*);

/// Which kernel was the fastest for a piece of work on a kind of CPU.
struct KernelChoiceRecord {
  std::string cpu = {};           ///< identity of the CPU; not empty
  std::string key = {};           ///< the work: shape, layout, threads, type; not empty
  std::string choice = {};        ///< the kernel, in the engine's own words
  std::optional<double> ms = {};  ///< its time
  Time measured = {};             ///< when

  bool operator==(const KernelChoiceRecord&) const = default;
};
core::Fields fields_of(const KernelChoiceRecord*);

}  // namespace fleetfit::store
