#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/devices.h"
#include "fleetfit/app/probing.h"

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
  TextTable table("name | runtime | version | threads {} | precision | limits");
  for (const auto& summary : devices) {
    const auto& device = summary.device;
    table.add(device.name, device.runtime, device.runtime_info.version, device.threads,
              to_string(device.precision), limits_text(summary));
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

struct AddFlags {
  app::DeviceRequest request;
  bool replace = false;
};

void add_add(CLI::App& device, Context& context) {
  auto [verb, flags] =
      add_verb<AddFlags>(device, "add", "Name a way to run models on this machine");
  auto& request = flags->request;
  verb->add_option("NAME", request.name, "Its name: letters, digits, '-', '_' and '.'")->required();
  verb->add_option("--runtime", request.runtime,
                   "auto, onednn, xnnpack or reference (the engine), onnxruntime, exec:COMMAND");
  verb->add_option("--threads", request.threads, "Threads of an inference");
  verb->add_option("--cores", request.cores, "Cores that it may use, such as 0,1 or 0-3");
  verb->add_option("--precision", request.precision,
                   "fp32, or int8: float models are quantized, with ranges of random inputs");
  verb->add_option("--cpu-quota", request.cpu_quota_percent, "CPU time in percent of one core");
  verb->add_option("--memory-limit", request.memory_limit, "Most memory, such as 512M");
  verb->add_option("--frequency-khz", request.frequency_khz, "Highest clock frequency");
  verb->add_flag("--replace", flags->replace, "Take the place of a device of that name");
  verb->footer(
      "CPU time, memory and frequency are limited by the kernel, which mostly takes root.\n\n"
      "Example:\n  fleetfit device add ort --runtime onnxruntime --threads 2\n"
      "  fleetfit device add weak --cpu-quota 25 --memory-limit 256M");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    if (flags->replace) flags->request.existing = app::ExistingDevice::replace;
    FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
    return context.show(app::add_device(workplace, flags->request), device_text);
  });
}

void add_list(CLI::App& device, Context& context) {
  auto* verb = device.add_subcommand("list", "List the devices; 'local' is always there");
  verb->footer("Example:\n  fleetfit device list --json");
  context.on(verb, [&context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    return context.show(app::list_devices(workplace), devices_text);
  });
}

void add_show(CLI::App& device, Context& context) {
  auto [verb, name] =
      add_verb<std::string>(device, "show", "Say all about a device, and whether it has changed");
  verb->add_option("NAME", *name, "The device")->required();
  verb->footer("Example:\n  fleetfit device show local");
  context.on(verb, [name, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    return context.show(app::show_device(workplace, *name), device_text);
  });
}

void add_remove(CLI::App& device, Context& context) {
  auto [verb, name] =
      add_verb<std::string>(device, "remove", "Forget a device; its measurements stay");
  verb->add_option("NAME", *name, "The device")->required();
  verb->footer("Example:\n  fleetfit device remove weak");
  context.on(verb, [name, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    FLEETFIT_TRY(app::remove_device(workplace, *name));
    if (context.flags.json) context.print(nlohmann::ordered_json{{"removed", *name}});
    return done();
  });
}

std::string hardware_text(const measure::ProbeReport& report) {
  const auto& hardware = report.hardware;
  std::string text =
      fmt::format("{} ({}), {} cores, {} of memory{}\n", hardware.cpu_model, hardware.architecture,
                  hardware.cores.size(), with_prefix(hardware.memory_bytes, "B"),
                  hardware.hypervisor ? ", virtual machine" : "");
  for (const auto& cluster : hardware.clusters) {
    if (!cluster.min_frequency_khz || !cluster.max_frequency_khz) continue;
    text += fmt::format("cores {}: {} to {} MHz\n", fmt::join(cluster.cores, ","),
                        *cluster.min_frequency_khz / 1000, *cluster.max_frequency_khz / 1000);
  }
  for (const auto& cache : hardware.caches) {
    if (cache.type == "Instruction") continue;
    text += fmt::format("L{} cache of cores {}: {} KiB\n", cache.level, fmt::join(cache.cores, ","),
                        cache.bytes >> 10);
  }
  return text + fmt::format("{}\n", fmt::join(hardware.instruction_sets, " "));
}

std::string probe_text(const app::ProbedDevice& probed) {
  const auto& report = probed.report;
  TextTable table("measured | rate {:.1f} | unit | median {:.1f} | spread {:.0f} % | runs {}");
  for (const auto& rate : report.rates) {
    table.add(rate.subject, rate.value, rate.unit, rate.median, 100 * rate.spread, rate.runs);
  }
  auto text = fmt::format("{}\n{} thread{}, {:.1f} s", hardware_text(report), report.threads,
                          report.threads == 1 ? "" : "s", report.elapsed_s);
  if (const auto load = report.conditions.load_before) text += fmt::format(", load {:.2f}", *load);
  return text + "\n\n" + table.text();
}

struct ProbeFlags {
  double seconds = 10;
  std::string roofline;
};

Result<Verdict> run_probe(Context& context, const ProbeFlags& flags, const std::stop_token& stop) {
  app::ProbeRequest request{.threads = context.threads(), .seconds = flags.seconds};
  if (!flags.roofline.empty()) request.roofline = flags.roofline;
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  return context.show(app::probe_this_device(workplace, request, context.progress(), stop),
                      probe_text);
}

void add_probe(CLI::App& device, Context& context) {
  auto [verb, flags] = add_verb<ProbeFlags>(
      device, "probe",
      "Find out what this machine can do: arithmetic, bandwidth, classes of operators");
  verb->add_option("--seconds", flags->seconds, "Time for all measurements together")
      ->check(CLI::Range(0.01, 3600.0));
  verb->add_option("--roofline", flags->roofline,
                   "An HTML page to write: the roofline with the zoo's networks on it");
  verb->footer(
      "docs/probe.md says what each number means. Other work on the machine lowers them.\n\n"
      "Example:\n  fleetfit device probe --threads 1 --roofline roofline.html");
  context.on(verb, flags, run_probe);
}

}  // namespace

void add_device(CLI::App& program, Context& context) {
  auto& device =
      add_group(program, context, "device", "Name the devices that models are measured on",
                "Example:\n  fleetfit device add ort --runtime onnxruntime");
  add_add(device, context);
  add_list(device, context);
  add_show(device, context);
  add_remove(device, context);
  add_probe(device, context);
}

// Not for people, so --help does not list it: fleetfit starts itself with this verb.
void add_runtime(CLI::App& program, Context& context) {
  auto* verb = program.add_subcommand(
      "runtime", "Execute models for another process (docs/formats/runtime.md)");
  verb->group("");
  verb->footer("Example:\n  fleetfit device add other --runtime 'exec:fleetfit runtime'");
  context.on(verb,
             []() -> Result<Verdict> { return app::serve_engine(std::cin, std::cout).map(done); });
}

}  // namespace fleetfit::cli
