#pragma once

#include "fleetfit/core/result.h"
#include "fleetfit/cost/features.h"

namespace fleetfit::predict {

/// Fails with `invalid_input` if there are not as many values as the kind has features, or one is
/// negative or not finite.
Status check_features(const cost::KernelFeatures& features);

}  // namespace fleetfit::predict
