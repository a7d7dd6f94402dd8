#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleetfit/app/devices.h"
#include "fleetfit/app/workplace.h"
#include "fleetfit/core/scratch_folder.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/measure/exec_runtime.h"
#include "fleetfit/measure/limits.h"
#include "fleetfit/measure/runtime.h"

namespace fleetfit::app {

/// A runtime in a process of its own, under the limits of its device; a process that is started
/// again after a failure gets them again.
struct OpenedRuntime {
  /// Outlives the process that it limits. On the heap, as all that start processes refer to it.
  std::unique_ptr<std::optional<measure::AppliedLimits>> limits;
  std::optional<core::ScratchFolder> scratch =
      std::nullopt;  ///< temporary files of another program
  std::unique_ptr<measure::Runtime> runtime;
  std::unique_ptr<int> pid = std::make_unique<int>(0);  ///< of the process that runs now
};

/// Whether fleetfit's own engine is meant: "auto", "onednn", "xnnpack" or "reference".
bool is_engine(std::string_view runtime);

/// Fails with `not_found` or `io` if the runtime cannot be started, with `device_failed` if it does
/// not speak the protocol, and as `measure::apply_limits` does.
Result<OpenedRuntime> open_runtime(const measure::Device& device, const Programs& programs,
                                   const measure::AnswerTimes& timeouts = {});

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
Result<OpenedDevice> start_device(measure::Device device, const Programs& programs,
                                  const measure::AnswerTimes& timeouts = {});

/// Starts the device of that name. Fails with `invalid_input` if it is not the same any more: its
/// measurements would be those of another device.
Result<OpenedDevice> open_device(Workplace& workplace, std::string_view name,
                                 const measure::AnswerTimes& timeouts = {});

/// The device of that name as it is now, started and then let go; `as_added`: as the store has it,
/// for a device that is elsewhere. `local` is always this machine.
Result<DeviceSummary> identify_device(Workplace& workplace, std::string_view name, bool as_added);

/// What of hardware and runtime differs; "" if nothing does.
std::string describe_change(const measure::Device& before, const measure::Device& now);

}  // namespace fleetfit::app
