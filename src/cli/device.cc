#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/devices.h"

namespace fleetfit::cli {
namespace {

std::string limits_text(const app::DeviceSummary& summary) {
  const auto& device = summary.device;
  std::vector<std::string> limits;
  if (!device.cores.empty())
    limits.push_back(fmt::format("cores {}", fmt::join(device.cores, ",")));
  if (const auto quota = device.limits.cpu_quota_percent)
    limits.push_back(fmt::format("{} % of a core", *quota));
  if (const auto bytes = device.limits.memory_bytes)
    limits.push_back(fmt::format("{} MiB", *bytes >> 20));
  if (const auto khz = device.limits.frequency_khz)
    limits.push_back(fmt::format("{} MHz", *khz / 1000));
  return limits.empty() ? "-" : fmt::format("{}", fmt::join(limits, ", "));
}

std::string devices_text(const std::vector<app::DeviceSummary>& devices) {
  TextTable table({{"name"},
                   {"runtime"},
                   {"version"},
                   {"threads", TextTable::Align::right},
                   {"precision"},
                   {"limits"}});
  for (const auto& summary : devices) {
    const auto& device = summary.device;
    table.add({device.name, device.runtime, device.runtime_info.version,
               std::to_string(device.threads), std::string(to_string(device.precision)),
               limits_text(summary)});
  }
  return table.text();
}

std::string device_text(const app::DeviceSummary& summary) {
  const auto& device = summary.device;
  std::string text = fmt::format("name         {}\nruntime      {}: {} {}\n             {}\n",
                                 device.name, device.runtime, device.runtime_info.name,
                                 device.runtime_info.version, device.runtime_info.build);
  text += fmt::format("threads      {}\nprecision    {}\nlimits       {}\n", device.threads,
                      std::string(to_string(device.precision)), limits_text(summary));
  text += fmt::format("hardware     {} ({}), {} cores\n             {}\n",
                      device.hardware.cpu_model, device.hardware.architecture,
                      device.hardware.cores, fmt::join(device.hardware.instruction_sets, " "));
  text += fmt::format("fingerprint  {}\n", summary.fingerprint);
  if (!summary.change.empty()) {
    text += fmt::format("It is another device now: {}.\nAdd it again to measure on it.\n",
                        summary.change);
  }
  return text;
}

template <class T>
int print_either(const Context& context, const T& value, std::string (*text)(const T&)) {
  if (context.flags.json) {
    context.print(app::to_json(value));
  } else {
    context.print(text(value));
  }
  return 0;
}

void add_add(CLI::App& device, Context& context) {
  auto request = std::make_shared<app::DeviceRequest>();
  auto replace = std::make_shared<bool>(false);
  auto* verb = device.add_subcommand("add", "Name a way to run models on this machine");
  verb->add_option("NAME", request->name, "Its name: letters, digits, '-', '_' and '.'")
      ->required();
  verb->add_option("--runtime", request->runtime,
                   "auto, onednn, xnnpack or reference (the engine), onnxruntime, exec:COMMAND")
      ->capture_default_str();
  verb->add_option("--threads", request->threads, "Threads of an inference")->capture_default_str();
  verb->add_option("--cores", request->cores, "Cores that it may use, such as 0,1 or 0-3");
  verb->add_option("--precision", request->precision,
                   "fp32, or int8: float models are quantized, with ranges of random inputs")
      ->capture_default_str();
  verb->add_option("--cpu-quota", request->cpu_quota_percent, "CPU time in percent of one core");
  verb->add_option("--memory-limit", request->memory_limit, "Most memory, such as 512M");
  verb->add_option("--frequency-khz", request->frequency_khz, "Highest clock frequency");
  verb->add_flag("--replace", *replace, "Take the place of a device of that name");
  verb->footer(
      "CPU time, memory and frequency are limited by the kernel, which mostly takes root.\n\n"
      "Example:\n  fleetfit device add ort --runtime onnxruntime --threads 2\n"
      "  fleetfit device add weak --cpu-quota 25 --memory-limit 256M");
  verb->callback([request, replace, &context] {
    context.action = [request, replace, &context]() -> Result<int> {
      if (*replace) request->existing = app::ExistingDevice::replace;
      FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
      FLEETFIT_ASSIGN(const auto added, app::add_device(workplace, *request));
      return print_either(context, added, device_text);
    };
  });
}

void add_list(CLI::App& device, Context& context) {
  auto* verb = device.add_subcommand("list", "List the devices; 'local' is always there");
  verb->footer("Example:\n  fleetfit device list --json");
  verb->callback([&context] {
    context.action = [&context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      FLEETFIT_ASSIGN(const auto devices, app::list_devices(workplace));
      return print_either(context, devices, devices_text);
    };
  });
}

void add_show(CLI::App& device, Context& context) {
  auto name = std::make_shared<std::string>();
  auto* verb = device.add_subcommand("show", "Say all about a device, and whether it has changed");
  verb->add_option("NAME", *name, "The device")->required();
  verb->footer("Example:\n  fleetfit device show local");
  verb->callback([name, &context] {
    context.action = [name, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      FLEETFIT_ASSIGN(const auto shown, app::show_device(workplace, *name));
      return print_either(context, shown, device_text);
    };
  });
}

void add_remove(CLI::App& device, Context& context) {
  auto name = std::make_shared<std::string>();
  auto* verb = device.add_subcommand("remove", "Forget a device; its measurements stay");
  verb->add_option("NAME", *name, "The device")->required();
  verb->footer("Example:\n  fleetfit device remove weak");
  verb->callback([name, &context] {
    context.action = [name, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      FLEETFIT_TRY(app::remove_device(workplace, *name));
      if (context.flags.json) context.print(nlohmann::ordered_json{{"removed", *name}});
      return 0;
    };
  });
}

}  // namespace

void add_device(CLI::App& program, Context& context) {
  auto* device = program.add_subcommand("device", "Name the devices that models are measured on");
  device->footer("Example:\n  fleetfit device add ort --runtime onnxruntime");
  device->require_subcommand(0, 1);
  device->callback([device, &context] {
    if (!device->get_subcommands().empty()) return;
    context.action = []() -> Result<int> {
      return fail(ErrorCode::invalid_input,
                  "device needs a verb: add, list, show, remove or probe");
    };
  });
  add_add(*device, context);
  add_list(*device, context);
  add_show(*device, context);
  add_remove(*device, context);
  add_device_probe(*device, context);
}

}  // namespace fleetfit::cli
