#pragma once

#include <span>
#include <string>
#include <vector>

#include "fleetfit/core/result.h"
#include "fleetfit/cost/features.h"

namespace fleetfit::predict {

/// One kernel of a profiled network.
struct KernelSample {
  cost::KernelFeatures features = {};
  double ms = 0;
};

/// A network that was measured with the times of its kernels.
struct NetworkSample {
  std::string name = {};
  std::vector<KernelSample> kernels = {};
  double overhead_ms = 0;  ///< what profiled runs took beside the kernels, from 0
  double latency_ms = 0;   ///< median of runs that were not profiled
};

/// Fails with `invalid_input` if there are not as many values as the kind has features, or one is
/// negative or not finite.
Status check_features(const cost::KernelFeatures& features);

/// Fails with `invalid_input`, naming network and kernel, if there are no samples, a network has no
/// kernels, a time is not positive and finite, the overhead is negative or not finite, or features
/// are not what `cost::feature_names` says.
Status check_samples(std::span<const NetworkSample> samples);

}  // namespace fleetfit::predict
