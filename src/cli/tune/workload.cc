#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/text_table.h"
#include "fleetfit/app/workloads.h"

namespace fleetfit::cli {
namespace {

using workloads::Setting;
using workloads::SettingKind;
using workloads::Workload;

std::string list_text(std::span<const Workload> all) {
  TextTable table("workload | what it is | data");
  for (const auto& workload : all) table.add(workload.name, workload.summary, workload.data_needed);
  return table.text();
}

std::string range_text(const Setting& setting) {
  if (!setting.choices.empty()) return fmt::format("{}", fmt::join(setting.choices, ", "));
  if (setting.kind == SettingKind::text) return "text";
  return fmt::format("{:g} to {:g}", setting.min, setting.max);
}

std::string preset_text(const Setting& setting) {
  return setting.kind == SettingKind::text ? setting.preset_text
                                           : fmt::format("{:g}", setting.preset);
}

std::string details_text(const Workload& workload) {
  TextTable table("parameter | group | default | values | what it is");
  for (const auto& setting : workload.settings)
    table.add(setting.name, setting.group, preset_text(setting), range_text(setting),
              setting.summary);
  return fmt::format("{}: {}\n\ndata      {}\naccuracy  {}\n\n{}\nA study of it:\n\n{}",
                     workload.name, workload.summary, workload.data_needed, workload.accuracy,
                     table.text(), workloads::example_study(workload));
}

Result<Verdict> run_list(const Context& context) {
  const auto all = workloads::all_workloads();
  return context.show(app::workloads_json(all), list_text(all));
}

Result<Verdict> run_show(const Context& context, const std::string& name) {
  FLEETFIT_ASSIGN(const auto workload, workloads::find_workload(name));
  return context.show(app::workload_json(*workload), details_text(*workload));
}

}  // namespace

void add_workload(CLI::App& program, Context& context) {
  auto* workload = program.add_subcommand("workload", "Trainings that come with fleetfit");
  workload->require_subcommand(1);
  auto* list = workload->add_subcommand("list", "Every built-in workload");
  list->footer("Example:\n  fleetfit workload list");
  context.on(list, [&context] { return run_list(context); });
  auto [show, name] =
      add_verb<std::string>(*workload, "show", "Parameters, data and an example study of one");
  show->add_option("NAME", *name, "'fleetfit workload list' tells them")->required();
  show->footer("Example:\n  fleetfit workload show resnet-fashion-mnist");
  context.on(show, name, run_show);
}

}  // namespace fleetfit::cli
