#pragma once

#include <memory>
#include <string_view>

#include "fleetfit/adapt/timers.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"

namespace fleetfit::app {

/// Times networks on a device of the workplace, in the way in which `fleetfit measure` does.
class DeviceTimer {
 public:
  virtual ~DeviceTimer() = default;
  virtual adapt::NetworkTimer& timer() = 0;

  /// Keeps in the store which kernels were found fastest.
  virtual Status keep_kernels() = 0;
};

/// The engine in this process where that is the device, else the device's runtime. The workplace is
/// borrowed. `program_bytes`: about the most for networks that take turns in this process. Fails
/// with `unsupported` for a device of int8, and as opening a device does.
Result<std::unique_ptr<DeviceTimer>> open_timer(
    Workplace& workplace, std::string_view name, const adapt::TimingOptions& timing,
    std::size_t program_bytes = adapt::EngineTimerOptions{}.program_bytes);

}  // namespace fleetfit::app
