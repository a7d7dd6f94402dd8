#pragma once

#include <cstddef>
#include <vector>

#include "fleetfit/fit/device_fitter.h"

namespace fleetfit::fit {

struct SharingPlan {
  double within = 0.5;            ///< loss of accuracy, in the units of accuracies
  std::size_t confirmations = 4;  ///< most further measurements on each device
};

struct Sharing {
  std::vector<SharedModel> models = {};
  std::size_t measurements = 0;
};

/// The fewest designs of which each device gets one that keeps its budgets and is at most so much
/// less accurate than its own best, confirmed by measuring. Devices without a best are left out.
/// The fitters are borrowed; what is measured is added to what they found.
Result<Sharing> share_models(std::vector<DeviceFitter*> devices, const Prospects& prospects,
                             const space::Space& space, const SharingPlan& plan);

}  // namespace fleetfit::fit
