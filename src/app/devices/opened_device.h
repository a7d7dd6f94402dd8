#pragma once

#include <string_view>

#include "app/devices/runtimes.h"
#include "fleetfit/app/devices.h"

namespace fleetfit::app {

/// A device with its runtime started.
struct OpenedDevice {
  measure::Device device;
  std::string fingerprint;
  OpenedRuntime opened;

  measure::Runtime& runtime() const { return *opened.runtime; }
};

/// The device of that name, as it was added; `local` without hardware and runtime. `not_found` if
/// there is none.
Result<DeviceSummary> find_device(Workplace& workplace, std::string_view name);

/// Starts the device's runtime and fills in what runtime and hardware are now.
Result<OpenedDevice> start_device(measure::Device device, const Programs& programs);

/// Starts the device of that name. Fails with `invalid_input` if it is not the same any more: its
/// measurements would be those of another device.
Result<OpenedDevice> open_device(Workplace& workplace, std::string_view name);

/// The device of that name as it is now, started and then let go; `as_added`: as the store has it,
/// for a device that is elsewhere. `local` is always this machine.
Result<DeviceSummary> identify_device(Workplace& workplace, std::string_view name, bool as_added);

/// What of hardware and runtime differs; "" if nothing does.
std::string describe_change(const measure::Device& before, const measure::Device& now);

}  // namespace fleetfit::app
