#include "fleetfit/app/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/kernel_rules.h"
#include "app/opened_device.h"
#include "fleetfit/core/json.h"
#include "fleetfit/measure/hardware.h"

namespace fleetfit::app {
namespace {

using measure::Device;

Device local_device() { return {.name = std::string(kLocalDevice)}; }

Result<Device> parse_request(const DeviceRequest& request) {
  Device device{.name = request.name, .runtime = request.runtime, .threads = request.threads};
  device.limits.cpu_quota_percent = request.cpu_quota_percent;
  device.limits.frequency_khz = request.frequency_khz;
  const auto precision = measure::parse_precision(request.precision);
  if (!precision) return tl::unexpected(precision.error());
  device.precision = *precision;
  if (!request.cores.empty()) {
    auto cores = measure::parse_cores(request.cores);
    if (!cores) return core::within("cores", std::move(cores.error()));
    device.cores = *std::move(cores);
  }
  if (!request.memory_limit.empty()) {
    const auto bytes = measure::parse_bytes(request.memory_limit);
    if (!bytes) return core::within("memory limit", bytes.error());
    device.limits.memory_bytes = *bytes;
  }
  if (auto ok = check(device); !ok) return tl::unexpected(std::move(ok.error()));
  return device;
}

Status check_name_is_free(Workplace& workplace, const DeviceRequest& request) {
  if (request.name == kLocalDevice) {
    return fail(ErrorCode::invalid_input, "the device local is always there, as it is");
  }
  if (request.name == "model" || request.name == "hash") {
    return fail(ErrorCode::invalid_input,
                fmt::format("name: tables have a column {} that is no device", request.name));
  }
  if (request.existing == ExistingDevice::replace) return {};
  const auto existing = workplace.store->find_device(request.name);
  if (!existing) return tl::unexpected(existing.error());
  if (!*existing) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("there is a device {} already; --replace takes its place", request.name));
}

store::Time now(const Workplace& workplace) {
  return std::chrono::floor<std::chrono::milliseconds>(workplace.clock.date());
}

Result<DeviceSummary> from_record(const store::DeviceRecord& record) {
  const auto place = fmt::format("device {} in the store", record.name);
  const auto settings = core::parse_json(record.settings, place);
  if (!settings) return tl::unexpected(settings.error());
  auto device = measure::device_from_json(core::JsonView(*settings, place));
  if (!device) return tl::unexpected(std::move(device.error()));
  return DeviceSummary{
      .device = *std::move(device), .fingerprint = record.fingerprint, .created = record.created};
}

tl::unexpected<Error> no_device(std::string_view name) {
  return fail(ErrorCode::not_found,
              fmt::format("there is no device {}; 'fleetfit device list' shows those that there "
                          "are, 'fleetfit device add' adds one",
                          name));
}

std::string text_of(const measure::RuntimeInfo& info) {
  return fmt::format("{} {} ({})", info.name, info.version, info.build);
}

std::string text_of(const measure::HardwareIdentity& hardware) {
  return fmt::format("{} with {} cores, up to {} kHz, {}", hardware.cpu_model, hardware.cores,
                     hardware.max_frequency_khz, fmt::join(hardware.instruction_sets, " "));
}

}  // namespace

std::string describe_change(const Device& before, const Device& now) {
  if (before.runtime_info != now.runtime_info) {
    return fmt::format("its runtime was {} and is {}", text_of(before.runtime_info),
                       text_of(now.runtime_info));
  }
  if (before.hardware != now.hardware) {
    return fmt::format("its hardware was {} and is {}", text_of(before.hardware),
                       text_of(now.hardware));
  }
  return "";
}

Result<DeviceSummary> find_device(Workplace& workplace, std::string_view name) {
  if (name == kLocalDevice) return DeviceSummary{.device = local_device()};
  const auto record = workplace.store->find_device(name);
  if (!record) return tl::unexpected(record.error());
  if (!*record) return no_device(name);
  return from_record(**record);
}

Result<OpenedDevice> start_device(Device device, const Programs& programs) {
  const auto hardware = measure::read_hardware();
  if (!hardware) return tl::unexpected(hardware.error());
  if (auto fits = check_fits(device, *hardware); !fits) {
    return core::within("device " + device.name, std::move(fits.error()));
  }
  auto opened = open_runtime(device, programs);
  if (!opened) return core::within("device " + device.name, std::move(opened.error()));
  auto info = opened->runtime->info();
  if (!info) return core::within("device " + device.name, std::move(info.error()));
  device.runtime_info = *std::move(info);
  if (device.runtime == "onednn" && !has_onednn(device))
    return fail(
        ErrorCode::unsupported,
        fmt::format("device {}: this build of fleetfit has no oneDNN; its kernels are those "
                    "of runtime xnnpack",
                    device.name));
  device.hardware = measure::identity_of(*hardware);
  auto fingerprint = measure::fingerprint(device);
  return OpenedDevice{std::move(device), std::move(fingerprint), *std::move(opened)};
}

Result<OpenedDevice> open_device(Workplace& workplace, std::string_view name) {
  const auto known = find_device(workplace, name);
  if (!known) return tl::unexpected(known.error());
  auto opened = start_device(known->device, workplace.programs);
  if (!opened || name == kLocalDevice || opened->fingerprint == known->fingerprint) return opened;
  return fail(ErrorCode::invalid_input,
              fmt::format("device {}: it is another device than the one that was added: {}; add "
                          "it again, under another name or with --replace",
                          name, describe_change(known->device, opened->device)));
}

Result<DeviceSummary> identify_device(Workplace& workplace, std::string_view name, bool as_added) {
  if (as_added && name != kLocalDevice) return find_device(workplace, name);
  return open_device(workplace, name).map([](const OpenedDevice& opened) {
    return DeviceSummary{.device = opened.device, .fingerprint = opened.fingerprint};
  });
}

Result<DeviceSummary> add_device(Workplace& workplace, const DeviceRequest& request) {
  auto device = parse_request(request);
  if (!device) return tl::unexpected(std::move(device.error()));
  if (auto ok = check_name_is_free(workplace, request); !ok) return tl::unexpected(ok.error());
  const auto opened = start_device(*std::move(device), workplace.programs);
  if (!opened) return tl::unexpected(opened.error());
  DeviceSummary summary{
      .device = opened->device, .fingerprint = opened->fingerprint, .created = now(workplace)};
  const auto saved = workplace.store->save_device(
      {.name = summary.device.name,
       .fingerprint = summary.fingerprint,
       .settings = core::format_json_line(measure::to_json(summary.device)),
       .created = *summary.created});
  if (!saved) return tl::unexpected(saved.error());
  return summary;
}

Result<std::vector<DeviceSummary>> list_devices(Workplace& workplace) {
  auto local = show_device(workplace, kLocalDevice);
  if (!local) return tl::unexpected(std::move(local.error()));
  std::vector<DeviceSummary> list = {*std::move(local)};
  const auto records = workplace.store->list_devices();
  if (!records) return tl::unexpected(records.error());
  for (const auto& record : *records) {
    auto summary = from_record(record);
    if (!summary) return tl::unexpected(std::move(summary.error()));
    list.push_back(*std::move(summary));
  }
  return list;
}

Result<DeviceSummary> show_device(Workplace& workplace, std::string_view name) {
  auto summary = find_device(workplace, name);
  if (!summary) return tl::unexpected(std::move(summary.error()));
  const auto started = start_device(summary->device, workplace.programs);
  if (name == kLocalDevice) {
    if (!started) return tl::unexpected(started.error());
    return DeviceSummary{.device = started->device, .fingerprint = started->fingerprint};
  }
  summary->change = started ? describe_change(summary->device, started->device)
                            : fmt::format("it cannot be started: {}", started.error().message);
  return summary;
}

Status remove_device(Workplace& workplace, std::string_view name) {
  if (name == kLocalDevice) {
    return fail(ErrorCode::invalid_input, "the device local cannot be removed");
  }
  const auto removed = workplace.store->remove_device(name);
  if (!removed) return tl::unexpected(removed.error());
  if (!*removed) return no_device(name);
  return {};
}

}  // namespace fleetfit::app
