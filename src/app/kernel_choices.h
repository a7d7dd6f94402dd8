#pragma once

#include <string>

#include "fleetfit/app/workplace.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/measurement.h"

namespace fleetfit::app {

/// What the store knows of the fastest kernels, as the device's runtime takes it; "" if it knows
/// nothing or the runtime is not the engine.
Result<std::string> known_choices(Workplace& workplace, const measure::Device& device);

/// Keeps what a measurement found out about kernels. Of a device with limits nothing is kept: times
/// taken while it was throttled would mislead all others.
Status save_choices(Workplace& workplace, const measure::Device& device,
                    const measure::Measurement& measurement);

}  // namespace fleetfit::app
