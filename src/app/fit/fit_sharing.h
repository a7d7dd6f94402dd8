#pragma once

#include <cstddef>
#include <vector>

#include "app/fit/device_fitter.h"
#include "fleetfit/app/fitting.h"

namespace fleetfit::app {

/// A device that was fitted, and what it was fitted with. Borrows both.
struct SharingDevice {
  FittedDevice* device;
  DeviceFitter* fitter;
};

struct SharingPlan {
  double within = 0.5;            ///< loss of accuracy, in the units of accuracies
  std::size_t confirmations = 4;  ///< most further measurements on each device
};

/// The fewest designs of which each device gets one that keeps its budgets and is at most so much
/// less accurate than its own best, confirmed by measuring. Devices without a best are left out.
/// Adds what it measures to the devices, and `measurements` counts them.
Result<std::vector<SharedModel>> share_models(std::vector<SharingDevice> devices,
                                              const Prospects& prospects, const space::Space& space,
                                              const SharingPlan& plan, std::size_t& measurements);

}  // namespace fleetfit::app
