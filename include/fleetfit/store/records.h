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
using MeasurementRecord = records::Measurement;

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
