#pragma once

#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "app/devices/kernel_choices.h"
#include "app/devices/opened_device.h"
#include "app/models/model_files.h"
#include "fleetfit/app/measuring.h"

namespace fleetfit::app {

/// How models are measured.
struct SessionOptions {
  const measure::Protocol& protocol;
  const std::optional<measure::PowerModel>& power;
  KernelChoices& choices;
};

/// Starts the devices of these names, for measuring by that protocol.
Result<std::vector<OpenedDevice>> open_devices(Workplace& workplace,
                                               const std::vector<std::string>& names,
                                               const measure::Protocol& protocol);

/// Fails with `invalid_input` if there is none, or one is named twice.
Status check_devices(const std::vector<std::string>& names);

/// Measures one model on all devices, in turns where they can be. Keeps the engine's kernels.
Result<std::vector<MeasuredModel>> measure_on_devices(Workplace& workplace,
                                                      const SessionOptions& options,
                                                      ModelFiles& files,
                                                      std::vector<OpenedDevice> devices,
                                                      const std::stop_token& stop);

/// Keeps the measurements of one model, but for those that were cancelled.
Status keep_measurements(Workplace& workplace, const ModelFiles& files,
                         std::span<const MeasuredModel> results);

}  // namespace fleetfit::app
