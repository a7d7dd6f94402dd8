#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/probing.h"
#include "fleetfit/core/interrupt.h"

namespace fleetfit::cli {
namespace {

using Align = TextTable::Align;

std::string hardware_text(const measure::ProbeReport& report) {
  const auto& hardware = report.hardware;
  std::string text = fmt::format("{} ({}), {} cores, {} of memory{}\n", hardware.cpu_model,
                                 hardware.architecture, hardware.cores.size(),
                                 with_prefix(static_cast<double>(hardware.memory_bytes), "B"),
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
  TextTable table({{"measured"},
                   {"rate", Align::right},
                   {"unit"},
                   {"median", Align::right},
                   {"spread", Align::right},
                   {"runs", Align::right}});
  for (const auto& rate : report.rates) {
    table.add({rate.subject, fmt::format("{:.1f}", rate.value), rate.unit,
               fmt::format("{:.1f}", rate.median), fmt::format("{:.0f} %", 100 * rate.spread),
               std::to_string(rate.runs)});
  }
  auto text = fmt::format("{}\n{} thread{}, {:.1f} s", hardware_text(report), report.threads,
                          report.threads == 1 ? "" : "s", report.elapsed_s);
  if (const auto load = report.conditions.load_before) text += fmt::format(", load {:.2f}", *load);
  return text + "\n\n" + table.text();
}

Result<int> run_probe(Context& context, app::ProbeRequest request) {
  request.threads = context.threads();
  const core::Interrupt interrupt;
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto probed, app::probe_this_device(workplace, request, context.progress(),
                                                            interrupt.token()));
  if (context.flags.json) {
    context.print(app::to_json(probed));
  } else {
    context.print(probe_text(probed));
  }
  return 0;
}

}  // namespace

void add_device_probe(CLI::App& device, Context& context) {
  struct Flags {
    double seconds = 10;
    std::string roofline;
  };
  auto flags = std::make_shared<Flags>();
  auto* verb = device.add_subcommand(
      "probe", "Find out what this machine can do: arithmetic, bandwidth, classes of operators");
  verb->add_option("--seconds", flags->seconds, "Time for all measurements together")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  verb->add_option("--roofline", flags->roofline,
                   "An HTML page to write: the roofline with the zoo's networks on it");
  verb->footer(
      "docs/probe.md says what each number means. Other work on the machine lowers them.\n\n"
      "Example:\n  fleetfit device probe --threads 1 --roofline roofline.html");
  verb->callback([flags, &context] {
    context.action = [flags, &context] {
      app::ProbeRequest request{.seconds = flags->seconds};
      if (!flags->roofline.empty()) request.roofline = flags->roofline;
      return run_probe(context, std::move(request));
    };
  });
}

}  // namespace fleetfit::cli
