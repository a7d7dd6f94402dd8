#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleetfit/core/json.h"
#include "fleetfit/core/result.h"
#include "fleetfit/measure/hardware.h"
#include "fleetfit/measure/runtime.h"

namespace fleetfit::core {
struct Fields;
}

/// A Device is a place where a model has a cost: hardware, runtime, threads, cores, precision and
/// limits. A change of any of them makes another device.
namespace fleetfit::measure {

using core::to_string;

enum class Precision { fp32, int8 };

core::Names names_of(Precision);
Result<Precision> parse_precision(std::string_view text);

/// What makes a weaker device of this machine. Nothing = not limited.
struct Limits {
  std::optional<int> cpu_quota_percent = std::nullopt;  ///< of one core: 250 = two and a half
  std::optional<std::int64_t> memory_bytes = std::nullopt;
  std::optional<std::int64_t> frequency_khz = std::nullopt;  ///< highest clock frequency

  bool any() const { return cpu_quota_percent || memory_bytes || frequency_khz; }
  bool operator==(const Limits&) const = default;
};
core::Fields fields_of(const Limits*);

/// What of the hardware makes it the same device again. The kernel's release is not part of it (it
/// is recorded with each measurement), nor is what differs between boots.
struct HardwareIdentity {
  std::string architecture = {};
  std::string cpu_model = {};
  int cores = 0;
  std::vector<std::string> instruction_sets = {};
  std::int64_t max_frequency_khz = 0;  ///< 0 if unknown
  bool hypervisor = false;

  bool operator==(const HardwareIdentity&) const = default;
};
core::Fields fields_of(const HardwareIdentity*);

HardwareIdentity identity_of(const Hardware& hardware);

struct Device {
  std::string name = {};
  /// "auto", "xnnpack", "onednn", "reference" (the engine), "onnxruntime" or "exec:COMMAND".
  std::string runtime = "auto";
  RuntimeInfo runtime_info = {};  ///< empty until the runtime was asked
  int threads = 1;
  std::vector<int> cores = {};  ///< in increasing order; empty = any
  Precision precision = Precision::fp32;
  Limits limits = {};
  HardwareIdentity hardware = {};

  bool operator==(const Device&) const = default;
};
core::Fields fields_of(const Device*);

/// Most threads that a device may have.
inline constexpr int kMaxThreads = 1024;

/// 64 hexadecimal digits that depend on everything in the device but its name. The same on every
/// machine and in every version that keeps the fields.
std::string fingerprint(const Device& device);

/// Fails with `invalid_input`, naming the field, on a name that is no plain word, an unknown
/// runtime, threads outside 1 to `kMaxThreads`, cores that are not in increasing order, and limits
/// that no machine could keep (a quota beyond all of its cores, less than 1 MiB of memory).
Status check(const Device& device);

/// Fails with `invalid_input` if the device asks for more than the hardware has: a core that is not
/// online, a quota beyond its cores, a frequency out of its range, more memory than there is.
Status check_fits(const Device& device, const Hardware& hardware);

nlohmann::json to_json(const Device& device);

/// Reads what `to_json` wrote; also runs `check`. Errors name the field.
Result<Device> device_from_json(const core::JsonView& json);

/// "512M", "2G", "1.5G", "4096", "64KiB": bytes; K, M, G and T are powers of 1024, with or without
/// "B" or "iB" after them.
Result<std::int64_t> parse_bytes(std::string_view text);

}  // namespace fleetfit::measure
