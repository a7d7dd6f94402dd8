#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/limits.h"
#include "fleetfit/measure/runtime.h"

namespace fleetfit::app {

/// A runtime in a process of its own, under the limits of its device; a process that is started
/// again after a failure gets them again.
struct OpenedRuntime {
  /// Outlives the process that it limits. On the heap, as all that start processes refer to it.
  std::unique_ptr<std::optional<measure::AppliedLimits>> limits;
  std::unique_ptr<measure::Runtime> runtime;
  std::unique_ptr<int> pid = std::make_unique<int>(0);  ///< of the process that runs now
};

/// Whether fleetfit's own engine is meant: "auto", "onednn", "xnnpack" or "reference".
bool is_engine(std::string_view runtime);

/// Fails with `not_found` or `io` if the runtime cannot be started, with `device_failed` if it does
/// not speak the protocol, and as `measure::apply_limits` does.
Result<OpenedRuntime> open_runtime(const measure::Device& device, const Programs& programs);

/// The command of this program with other arguments: `fleetfit`, or the running program.
Result<std::vector<std::string>> own_command(const Programs& programs,
                                             std::vector<std::string> arguments);

/// What a process that runs the engine has in its environment, added to ours.
std::vector<std::pair<std::string, std::string>> engine_environment();

/// Threads and kernels of the device.
measure::LoadOptions load_options(const measure::Device& device);

/// The name of the rules by which the device's runtime works; "" if none are known.
std::string rules_of_device(const measure::Device& device);

/// Whether the engine of this device was built with oneDNN's kernels.
bool has_onednn(const measure::Device& device);

}  // namespace fleetfit::app
