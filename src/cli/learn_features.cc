#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "fleetfit/app/device_features.h"

namespace fleetfit::cli {
namespace {

struct Flags {
  app::ReferenceRequest references;
  std::vector<std::string> probes;
  app::SheetRequest sheet;
  std::vector<std::filesystem::path> files;
  std::string output;
};

Result<std::vector<app::ProbeFile>> probe_files(const std::vector<std::string>& texts) {
  std::vector<app::ProbeFile> probes;
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("--probe: '{}' is not written DEVICE=FILE", text));
    }
    probes.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return probes;
}

Result<app::FeaturesRequest> request_of(const Context& context, const Flags& flags) {
  app::FeaturesRequest request{.files = flags.files, .seed = context.flags.seed};
  FLEETFIT_ASSIGN(request.probes, probe_files(flags.probes));
  if (!flags.references.table.empty()) {
    if (flags.references.space.empty())
      return fail(ErrorCode::invalid_input, "--table needs --space");
    request.references = flags.references;
  }
  if (!flags.sheet.file.empty()) request.sheet = flags.sheet;
  return request;
}

std::string made_text(const app::MadeFeatures& made, const std::string& output) {
  auto text = fmt::format("{}: {} devices, {} features\n", output, made.features.devices.size(),
                          made.features.columns.size());
  if (!made.left_out.empty())
    text += fmt::format("left out, as they hold text: {}\n", fmt::join(made.left_out, ", "));
  return text;
}

Result<Verdict> run(const Context& context, const Flags& flags) {
  FLEETFIT_ASSIGN(const auto request, request_of(context, flags));
  FLEETFIT_ASSIGN(const auto made, app::make_device_features(request));
  FLEETFIT_TRY(app::write_features(made, flags.output));
  return context.show(made, made_text(made, flags.output));
}

void add_flags(CLI::App& verb, Flags& flags) {
  auto& references = flags.references;
  auto* table = verb.add_option("--table", references.table, "Latencies by design and device, CSV");
  verb.add_option("--space", references.space, "The space of the table's designs");
  verb.add_option("--rows", references.rows, "Reference designs: rows of the table, from 0")
      ->delimiter(',')
      ->needs(table);
  verb.add_option("--design", references.designs, "A reference design; may be given again")
      ->take_all()
      ->needs(table);
  verb.add_option("--references", references.count,
                  "How many designs to choose where none is named")
      ->check(CLI::Range(1, 10'000));
  verb.add_option("--devices", references.devices, "Columns of the table to take; all without it")
      ->delimiter(',')
      ->needs(table);
  verb.add_option("--probe", flags.probes,
                  "DEVICE=FILE, what `device probe --json` printed there; may be given again")
      ->take_all();
  auto* sheet = verb.add_option("--sheet", flags.sheet.file, "A data sheet of devices, CSV");
  verb.add_option("--sheet-key", flags.sheet.device_column, "Its column with the devices' names")
      ->needs(sheet);
  verb.add_option("--add", flags.files, "A file of features to add to; may be given again")
      ->take_all();
  verb.add_option("-o,--output", flags.output, "The file to write")->required();
}

}  // namespace

void add_learn_features(CLI::App& learn, Context& context) {
  auto [verb, flags] = add_verb<Flags>(
      learn, "features", "Describe devices by numbers: reference latencies, probes, data sheets");
  add_flags(*verb, *flags);
  verb->footer(
      "What comes from several places is put together by the devices' names; what is not known of "
      "a device\nstays empty.\n\nExample:\n"
      "  fleetfit learn features --table latency.csv --space nasbench201 --references 10 -o "
      "features.csv");
  context.on(verb, flags, run);
}

}  // namespace fleetfit::cli
