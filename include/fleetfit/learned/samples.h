#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/learned/device_inputs.h"
#include "fleetfit/space/design.h"
#include "fleetfit/space/space.h"

namespace fleetfit::learned {

/// A cost of the designs on each device.
struct CostSamples {
  std::string name = {};            ///< "latency_ms", "energy_mj"
  std::vector<double> values = {};  ///< a row of designs for each device; NaN: not measured
};

/// What networks learn from.
struct Samples {
  const space::Space* space = nullptr;
  space::Population designs = space::Population(1);
  std::vector<double> accuracy = {};  ///< of each design; NaN: not known
  std::vector<std::string> devices = {};
  KnownFeatures features = {};  ///< of each device
  std::vector<CostSamples> costs = {};

  std::span<const double> costs_on(std::size_t cost, std::size_t device) const {
    return std::span(costs[cost].values).subspan(device * designs.size(), designs.size());
  }
};

/// Fails with `invalid_input`, naming the part, if sizes do not fit together, a cost is not
/// positive, a device has too few measured designs or accuracies are too few or all alike.
Status check(const Samples& samples);

/// The file between fleetfit and fleetfit-train (docs/training.md), type "learning-samples".
Status write_samples(const Samples& samples, const std::filesystem::path& file);
Result<Samples> read_samples(const std::filesystem::path& file);

/// The samples of some devices.
Samples of_devices(const Samples& samples, std::span<const std::size_t> devices);

}  // namespace fleetfit::learned
