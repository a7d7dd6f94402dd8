#include "fleetfit/measure/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fleetfit/core/json.h"
#include "fleetfit/core/sha256.h"
#include "measure/json_fields.h"

namespace fleetfit::measure {
namespace {

using core::JsonView;
using Json = nlohmann::json;

constexpr std::int64_t kLeastMemory = std::int64_t{1} << 20;
constexpr int kMostQuotaPercent = kMaxThreads * 100;
constexpr std::int64_t kMostFrequencyKhz = 100'000'000;
constexpr int kFormat = 1;
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

Json limits_json(const Limits& limits) {
  return {{"cpu_quota_percent", core::or_null(limits.cpu_quota_percent)},
          {"memory_bytes", core::or_null(limits.memory_bytes)},
          {"frequency_khz", core::or_null(limits.frequency_khz)}};
}

Json hardware_json(const HardwareIdentity& hardware) {
  return {{"architecture", hardware.architecture},
          {"cpu_model", hardware.cpu_model},
          {"cores", hardware.cores},
          {"instruction_sets", hardware.instruction_sets},
          {"max_frequency_khz", hardware.max_frequency_khz},
          {"hypervisor", hardware.hypervisor}};
}

Result<std::vector<int>> cores_from(const JsonView& json) {
  FLEETFIT_ASSIGN(const auto items, json.items());
  std::vector<int> cores;
  for (const auto& item : items) {
    FLEETFIT_ASSIGN(const auto core, item.as_integer({0, 4095}));
    cores.push_back(static_cast<int>(core));
  }
  return cores;
}

Status read_runtime(const JsonView& json, RuntimeInfo& info) {
  JsonFields fields(json);
  fields.allow_only({"name", "version", "build"});
  fields.text("name", info.name);
  fields.text("version", info.version);
  fields.text("build", info.build);
  return fields.status();
}

Status read_limits(const JsonView& json, Limits& limits) {
  JsonFields fields(json);
  fields.allow_only({"cpu_quota_percent", "memory_bytes", "frequency_khz"});
  fields.optional_integer("cpu_quota_percent", limits.cpu_quota_percent);
  fields.optional_integer("memory_bytes", limits.memory_bytes);
  fields.optional_integer("frequency_khz", limits.frequency_khz);
  return fields.status();
}

Status read_identity(const JsonView& json, HardwareIdentity& hardware) {
  JsonFields fields(json);
  fields.allow_only({"architecture", "cpu_model", "cores", "instruction_sets", "max_frequency_khz",
                     "hypervisor"});
  fields.text("architecture", hardware.architecture);
  fields.text("cpu_model", hardware.cpu_model);
  fields.integer("cores", hardware.cores);
  if (fields.object("instruction_sets")) {
    fields.take(json.texts("instruction_sets"), hardware.instruction_sets);
  }
  fields.integer("max_frequency_khz", hardware.max_frequency_khz);
  fields.boolean("hypervisor", hardware.hypervisor);
  return fields.status();
}

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

std::string_view to_string(Precision precision) {
  return precision == Precision::int8 ? "int8" : "fp32";
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

Json to_json(const Device& device) {
  return {{"format", kFormat},
          {"name", device.name},
          {"runtime", device.runtime},
          {"runtime_info",
           {{"name", device.runtime_info.name},
            {"version", device.runtime_info.version},
            {"build", device.runtime_info.build}}},
          {"threads", device.threads},
          {"cores", device.cores},
          {"precision", to_string(device.precision)},
          {"limits", limits_json(device.limits)},
          {"hardware", hardware_json(device.hardware)}};
}

Result<Device> device_from_json(const JsonView& json) {
  Device device;
  JsonFields fields(json);
  fields.allow_only({"format", "name", "runtime", "runtime_info", "threads", "cores", "precision",
                     "limits", "hardware"});
  int format = kFormat;
  std::string precision = "fp32";
  fields.integer("format", format);
  fields.take(json.text("name"), device.name);
  fields.text("runtime", device.runtime);
  fields.integer("threads", device.threads);
  fields.text("precision", precision);
  if (const auto cores = fields.object("cores")) fields.take(cores_from(*cores), device.cores);
  if (const auto info = fields.object("runtime_info")) {
    fields.note(read_runtime(*info, device.runtime_info));
  }
  if (const auto limits = fields.object("limits")) fields.note(read_limits(*limits, device.limits));
  if (const auto hardware = fields.object("hardware")) {
    fields.note(read_identity(*hardware, device.hardware));
  }
  FLEETFIT_TRY(fields.status());
  if (format != kFormat) {
    return json.error(fmt::format("format: {} is not known here, only {}", format, kFormat));
  }
  const auto parsed = parse_precision(precision);
  if (!parsed) return json.error(parsed.error().message);
  device.precision = *parsed;
  const auto checked = check(device);
  if (!checked) return json.error(checked.error().message);
  return device;
}

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
