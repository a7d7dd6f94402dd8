#include "fleetfit/measure/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/fields.h"
#include "fleetfit/core/sha256.h"

namespace fleetfit::measure {
namespace {

using core::field;
using core::JsonView;
using core::OtherKeys;
using Json = nlohmann::json;

constexpr std::int64_t kLeastMemory = std::int64_t{1} << 20;
constexpr int kMostQuotaPercent = kMaxThreads * 100;
constexpr std::int64_t kMostFrequencyKhz = 100'000'000;
constexpr double kMostCore = 4095;
constexpr std::int64_t kDeviceFormat = 1;
constexpr std::array<std::string_view, 5> kRuntimes = {"auto", "xnnpack", "onednn", "reference",
                                                       "onnxruntime"};
constexpr std::string_view kExec = "exec:";

bool is_plain_name(std::string_view name) {
  const auto plain = [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 100 && std::ranges::all_of(name, plain);
}

bool is_runtime(std::string_view runtime) {
  if (runtime.starts_with(kExec)) {
    return runtime.find_first_not_of(" \t", kExec.size()) != std::string_view::npos;
  }
  return std::ranges::find(kRuntimes, runtime) != kRuntimes.end();
}

Status check_limits(const Limits& limits) {
  if (const auto quota = limits.cpu_quota_percent;
      quota && (*quota < 1 || *quota > kMostQuotaPercent)) {
    return refuse(
        fmt::format("cpu_quota_percent: {} is not in 1 to {}", *quota, kMostQuotaPercent));
  }
  if (limits.memory_bytes && *limits.memory_bytes < kLeastMemory) {
    return refuse(fmt::format("memory_bytes: {} is less than 1 MiB, no program can run in it",
                              *limits.memory_bytes));
  }
  if (const auto khz = limits.frequency_khz; khz && (*khz < 1 || *khz > kMostFrequencyKhz)) {
    return refuse(fmt::format("frequency_khz: {} is not in 1 to {}", *khz, kMostFrequencyKhz));
  }
  return {};
}

Status check_cores(const std::vector<int>& cores) {
  const bool increasing = std::ranges::adjacent_find(cores, std::greater_equal<>()) == cores.end();
  if (increasing && (cores.empty() || cores.front() >= 0)) return {};
  return refuse(fmt::format("cores: [{}] are not different numbers in increasing order",
                            fmt::join(cores, ", ")));
}

Status read_device_format(const JsonView& view, Device&) {
  FLEETFIT_ASSIGN(const auto format, view.as_integer());
  if (format == kDeviceFormat) return {};
  return view.error(fmt::format("{} is not known here, only {}", format, kDeviceFormat));
}
std::int64_t device_format_of(const Device&) { return kDeviceFormat; }

int shift_of(std::string_view unit) {
  if (unit.empty() || unit == "B") return 0;
  constexpr std::string_view kLetters = "KMGT";
  const auto letter =
      kLetters.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  const std::string_view rest = unit.substr(1);
  if (letter == std::string_view::npos || !(rest.empty() || rest == "B" || rest == "iB")) return -1;
  return static_cast<int>(letter + 1) * 10;
}

}  // namespace

core::Names names_of(Precision) {
  static constexpr core::Name kAll[] = {{Precision::fp32, "fp32"}, {Precision::int8, "int8"}};
  return {.what = "precision", .all = kAll};
}

core::Fields fields_of(const RuntimeInfo*) {
  static constexpr core::Field kAll[] = {field<&RuntimeInfo::name>("name").may_be_missing(),
                                         field<&RuntimeInfo::version>("version").may_be_missing(),
                                         field<&RuntimeInfo::build>("build").may_be_missing()};
  return {.what = "runtime", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const Limits*) {
  static constexpr core::Field kAll[] = {field<&Limits::cpu_quota_percent>("cpu_quota_percent"),
                                         field<&Limits::memory_bytes>("memory_bytes"),
                                         field<&Limits::frequency_khz>("frequency_khz")};
  return {.what = "limits", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const HardwareIdentity*) {
  using Identity = HardwareIdentity;
  static constexpr core::Field kAll[] = {
      field<&Identity::architecture>("architecture").may_be_missing(),
      field<&Identity::cpu_model>("cpu_model").may_be_missing(),
      field<&Identity::cores>("cores").may_be_missing(),
      field<&Identity::instruction_sets>("instruction_sets").may_be_missing(),
      field<&Identity::max_frequency_khz>("max_frequency_khz").may_be_missing(),
      field<&Identity::hypervisor>("hypervisor").may_be_missing()};
  return {.what = "hardware", .all = kAll, .others = OtherKeys::refused};
}

core::Fields fields_of(const Device*) {
  static constexpr core::Field kAll[] = {
      core::field_by<Device, read_device_format, device_format_of>("format").may_be_missing(),
      field<&Device::name>("name"),
      field<&Device::runtime>("runtime").may_be_missing(),
      field<&Device::runtime_info>("runtime_info").may_be_missing(),
      field<&Device::threads>("threads").may_be_missing(),
      field<&Device::cores>("cores").between(0, kMostCore).may_be_missing(),
      field<&Device::precision>("precision").may_be_missing(),
      field<&Device::limits>("limits").may_be_missing(),
      field<&Device::hardware>("hardware").may_be_missing()};
  return {.what = "device",
          .all = kAll,
          .others = OtherKeys::refused,
          .rule = core::rule_by<Device, check>};
}

Result<Precision> parse_precision(std::string_view text) {
  if (text == "fp32") return Precision::fp32;
  if (text == "int8") return Precision::int8;
  return refuse(fmt::format("precision: \"{}\" is neither fp32 nor int8", text));
}

HardwareIdentity identity_of(const Hardware& hardware) {
  HardwareIdentity identity{.architecture = hardware.architecture,
                            .cpu_model = hardware.cpu_model,
                            .cores = static_cast<int>(hardware.cores.size()),
                            .instruction_sets = hardware.instruction_sets,
                            .hypervisor = hardware.hypervisor};
  for (const auto& cluster : hardware.clusters) {
    identity.max_frequency_khz =
        std::max(identity.max_frequency_khz, cluster.max_frequency_khz.value_or(0));
  }
  return identity;
}

std::string fingerprint(const Device& device) {
  Json json = to_json(device);
  json.erase("name");
  return core::sha256_hex(core::format_json_line(json));
}

Status check(const Device& device) {
  if (!is_plain_name(device.name)) {
    return refuse(
        fmt::format("name: \"{}\" is not made of letters, digits, '-', '_' and '.'", device.name));
  }
  if (!is_runtime(device.runtime)) {
    return refuse(fmt::format("runtime: \"{}\" is none of {} and exec:COMMAND", device.runtime,
                              fmt::join(kRuntimes, ", ")));
  }
  if (device.threads < 1 || device.threads > kMaxThreads) {
    return refuse(fmt::format("threads: {} is not in 1 to {}", device.threads, kMaxThreads));
  }
  return check_cores(device.cores).and_then([&] { return check_limits(device.limits); });
}

Status check_fits(const Device& device, const Hardware& hardware) {
  for (const int core : device.cores) {
    if (std::ranges::find(hardware.cores, core) != hardware.cores.end()) continue;
    return refuse(fmt::format("cores: this machine has no core {}, only {}", core,
                              fmt::join(hardware.cores, ", ")));
  }
  const auto& limits = device.limits;
  const int cores =
      static_cast<int>(device.cores.empty() ? hardware.cores.size() : device.cores.size());
  if (limits.cpu_quota_percent && *limits.cpu_quota_percent > cores * 100) {
    return refuse(fmt::format("cpu_quota_percent: {} is more than the {} of {} cores",
                              *limits.cpu_quota_percent, cores * 100, cores));
  }
  if (limits.memory_bytes && *limits.memory_bytes > hardware.memory_bytes) {
    return refuse(fmt::format("memory_bytes: {} is more than this machine's {}",
                              *limits.memory_bytes, hardware.memory_bytes));
  }
  if (!limits.frequency_khz) return {};
  for (const auto& cluster : hardware.clusters) {
    const auto low = cluster.min_frequency_khz.value_or(0);
    const auto high = cluster.max_frequency_khz.value_or(kMostFrequencyKhz);
    if (*limits.frequency_khz >= low && *limits.frequency_khz <= high) return {};
  }
  return refuse(
      fmt::format("frequency_khz: no core of this machine runs at {}", *limits.frequency_khz));
}

Json to_json(const Device& device) { return core::to_json<Json>(device); }

Result<Device> device_from_json(const JsonView& json) { return core::read<Device>(json); }

Result<std::int64_t> parse_bytes(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end is given
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const int shift =
      error == std::errc() ? shift_of({rest, static_cast<std::size_t>(end - rest)}) : -1;
  const double bytes = shift < 0 ? -1 : std::ldexp(number, shift);
  if (bytes >= 1 && bytes < 0x1p62) return static_cast<std::int64_t>(bytes);
  return refuse(fmt::format("\"{}\" is not a number of bytes such as 512M or 2G", text));
}

}  // namespace fleetfit::measure
