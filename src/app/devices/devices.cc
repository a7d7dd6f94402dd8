#include "fleetfit/app/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "app/devices/opened_device.h"
#include "fleetfit/core/json.h"
#include "fleetfit/measure/hardware.h"
#include "fleetfit/report/words.h"

namespace fleetfit::app {
namespace {

using measure::Device;

Device local_device() { return {.name = std::string(kLocalDevice)}; }

Result<Device> parse_request(const DeviceRequest& request) {
  Device device{.name = request.name, .runtime = request.runtime, .threads = request.threads};
  device.limits.cpu_quota_percent = request.cpu_quota_percent;
  device.limits.frequency_khz = request.frequency_khz;
  FLEETFIT_ASSIGN(device.precision, measure::parse_precision(request.precision));
  if (!request.cores.empty()) {
    auto cores = measure::parse_cores(request.cores);
    if (!cores) return core::within("cores", std::move(cores.error()));
    device.cores = *std::move(cores);
  }
  if (!request.memory_limit.empty()) {
    FLEETFIT_ASSIGN(device.limits.memory_bytes,
                    core::within("memory limit", measure::parse_bytes(request.memory_limit)));
  }
  FLEETFIT_TRY(check(device));
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
  FLEETFIT_ASSIGN(const auto existing, workplace.store->find_device(request.name));
  if (!existing) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("there is a device {} already; --replace takes its place", request.name));
}

store::Time now(const Workplace& workplace) {
  return std::chrono::floor<std::chrono::milliseconds>(workplace.clock.date());
}

Result<DeviceSummary> from_record(const store::DeviceRecord& record) {
  const auto place = fmt::format("device {} in the store", record.name);
  FLEETFIT_ASSIGN(const auto settings, core::parse_json(record.settings, place));
  FLEETFIT_ASSIGN(auto device, measure::device_from_json(core::JsonView(settings, place)));
  return DeviceSummary{
      .device = std::move(device), .fingerprint = record.fingerprint, .created = record.created};
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

using Json = nlohmann::ordered_json;

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
  FLEETFIT_ASSIGN(const auto record, workplace.store->find_device(name));
  if (!record) return no_device(name);
  return from_record(*record);
}

Result<OpenedDevice> start_device(Device device, const Programs& programs,
                                  const measure::AnswerTimes& timeouts) {
  FLEETFIT_ASSIGN(const auto hardware, measure::read_hardware());
  if (auto fits = check_fits(device, hardware); !fits) {
    return core::within("device " + device.name, std::move(fits.error()));
  }
  auto opened = open_runtime(device, programs, timeouts);
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
  device.hardware = measure::identity_of(hardware);
  auto fingerprint = measure::fingerprint(device);
  return OpenedDevice{std::move(device), std::move(fingerprint), *std::move(opened)};
}

Result<OpenedDevice> open_device(Workplace& workplace, std::string_view name,
                                 const measure::AnswerTimes& timeouts) {
  FLEETFIT_ASSIGN(const auto known, find_device(workplace, name));
  auto opened = start_device(known.device, workplace.programs, timeouts);
  if (!opened || name == kLocalDevice || opened->fingerprint == known.fingerprint) return opened;
  return fail(ErrorCode::invalid_input,
              fmt::format("device {}: it is another device than the one that was added: {}; add "
                          "it again, under another name or with --replace",
                          name, describe_change(known.device, opened->device)));
}

Result<DeviceSummary> identify_device(Workplace& workplace, std::string_view name, bool as_added) {
  if (as_added && name != kLocalDevice) return find_device(workplace, name);
  return open_device(workplace, name).map([](const OpenedDevice& opened) {
    return DeviceSummary{.device = opened.device, .fingerprint = opened.fingerprint};
  });
}

Result<DeviceSummary> add_device(Workplace& workplace, const DeviceRequest& request) {
  FLEETFIT_ASSIGN(auto device, parse_request(request));
  FLEETFIT_TRY(check_name_is_free(workplace, request));
  FLEETFIT_ASSIGN(const auto opened, start_device(std::move(device), workplace.programs));
  DeviceSummary summary{
      .device = opened.device, .fingerprint = opened.fingerprint, .created = now(workplace)};
  FLEETFIT_TRY(workplace.store->save_device(
      {.name = summary.device.name,
       .fingerprint = summary.fingerprint,
       .settings = core::format_json_line(measure::to_json(summary.device)),
       .created = *summary.created}));
  return summary;
}

Result<std::vector<DeviceSummary>> list_devices(Workplace& workplace) {
  FLEETFIT_ASSIGN(auto local, show_device(workplace, kLocalDevice));
  std::vector<DeviceSummary> list = {std::move(local)};
  FLEETFIT_ASSIGN(const auto records, workplace.store->list_devices());
  for (const auto& record : records) {
    FLEETFIT_ASSIGN(auto summary, from_record(record));
    list.push_back(std::move(summary));
  }
  return list;
}

Result<DeviceSummary> show_device(Workplace& workplace, std::string_view name) {
  FLEETFIT_ASSIGN(auto summary, find_device(workplace, name));
  const auto started = start_device(summary.device, workplace.programs);
  if (name == kLocalDevice) {
    FLEETFIT_TRY(started);
    return DeviceSummary{.device = started->device, .fingerprint = started->fingerprint};
  }
  summary.change = started ? describe_change(summary.device, started->device)
                           : fmt::format("it cannot be started: {}", started.error().message);
  return summary;
}

Status remove_device(Workplace& workplace, std::string_view name) {
  if (name == kLocalDevice) {
    return fail(ErrorCode::invalid_input, "the device local cannot be removed");
  }
  FLEETFIT_ASSIGN(const auto removed, workplace.store->remove_device(name));
  if (!removed) return no_device(name);
  return {};
}

Json to_json(const DeviceSummary& summary) {
  const auto& device = summary.device;
  const nlohmann::json all = measure::to_json(device);
  Json json{{"name", device.name}, {"runtime", device.runtime}};
  for (const char* key : {"runtime_info", "threads", "cores", "precision", "limits", "hardware"}) {
    json[key] = all.at(key);
  }
  json["fingerprint"] = summary.fingerprint;
  json["created"] = summary.created ? Json(report::date_text(*summary.created)) : Json();
  json["change"] = summary.change.empty() ? Json() : Json(summary.change);
  return json;
}

Json to_json(const std::vector<DeviceSummary>& devices) {
  return core::json_list(devices, [&](const auto& device) { return to_json(device); });
}

}  // namespace fleetfit::app
