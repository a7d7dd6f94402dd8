#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/app/workplace.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/device.h"
#include "fleetfit/store/records.h"

/// Use cases on devices: places where models are measured, kept by name.
namespace fleetfit::app {

/// The device that is always there: this machine, the engine, one thread, fp32.
inline constexpr std::string_view kLocalDevice = "local";

enum class ExistingDevice : std::uint8_t { keep, replace };

/// A device as the user says it.
struct DeviceRequest {
  std::string name = {};
  std::string runtime = "auto";  ///< auto, onednn, xnnpack, reference, onnxruntime, exec:COMMAND
  int threads = 1;
  std::string cores = {};          ///< "0,2-3"; empty: any
  std::string precision = "fp32";  ///< or "int8"
  std::optional<int> cpu_quota_percent = std::nullopt;
  std::string memory_limit = {};  ///< "512M"; empty: none
  std::optional<std::int64_t> frequency_khz = std::nullopt;
  ExistingDevice existing = ExistingDevice::keep;
};

struct DeviceSummary {
  measure::Device device = {};
  std::string fingerprint = {};
  std::optional<store::Time> created = std::nullopt;  ///< nothing for `local`
  /// Why it is another device now than when it was added; "" if it is the same or nobody looked.
  std::string change = {};
};

/// Starts the runtime once, under the limits, to see that both work and which version it is, and
/// keeps the device. Fails with `invalid_input`, naming the field, on a request that makes no
/// sense or asks for more than the machine has, on the name `local`, and on a name that exists
/// unless it is to be replaced; and as starting a runtime and limiting it do.
Result<DeviceSummary> add_device(Workplace& workplace, const DeviceRequest& request);

/// `local` and all that were added, by name. Starts only the runtime of `local`.
Result<std::vector<DeviceSummary>> list_devices(Workplace& workplace);

/// Also looks whether it has changed. `not_found` if there is no device of that name.
Result<DeviceSummary> show_device(Workplace& workplace, std::string_view name);

/// Its measurements stay. `not_found` if there is none, `invalid_input` for `local`.
Status remove_device(Workplace& workplace, std::string_view name);

nlohmann::ordered_json to_json(const DeviceSummary& summary);
nlohmann::ordered_json to_json(const std::vector<DeviceSummary>& devices);

}  // namespace fleetfit::app
