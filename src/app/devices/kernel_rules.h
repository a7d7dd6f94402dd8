#pragma once

#include <string>
#include <string_view>

#include "fleetfit/core/result.h"
#include "fleetfit/cost/kernels.h"
#include "fleetfit/measure/device.h"

namespace fleetfit::app {

/// Rules by the name of a set that comes with fleetfit, or of a file of one (*.json). A target may
/// stand behind a colon: "engine:xnnpack". "" stands for "plain".
Result<cost::KernelRules> rules_named(std::string_view name);

/// The name of the rules by which the device's runtime works; "" if none are known.
std::string rules_of_device(const measure::Device& device);

/// Whether the engine of this device was built with oneDNN's kernels.
bool has_onednn(const measure::Device& device);

}  // namespace fleetfit::app
