#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "fleetfit/app/stores.h"

namespace fleetfit::cli {
namespace {

struct CopyFlags {
  std::string from;
  std::string to;
};

std::string copy_text(const store::CopyCounts& counts) {
  return fmt::format(
      "copied {} devices, {} models, {} measurements, {} kernel choices, {} studies with {} "
      "trials, {} results of inference; of the fleet {} tokens, {} agents, {} jobs, {} events, {} "
      "files, {} entries of the audit\n",
      counts.devices, counts.models, counts.measurements, counts.kernel_choices, counts.studies,
      counts.trials, counts.inferences, counts.tokens, counts.agents, counts.jobs, counts.events,
      counts.files, counts.audit);
}

// A file that does not exist would be created, and nothing copied.
Status check_source(const std::string& url) {
  constexpr std::string_view kFile = "sqlite:";
  std::error_code ignored;
  if (!url.starts_with(kFile) || std::filesystem::exists(url.substr(kFile.size()), ignored))
    return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("{}: there is no such file", url.substr(kFile.size())));
}

Result<Verdict> copy(Context& context, const CopyFlags& flags) {
  if (flags.from == flags.to)
    return fail(ErrorCode::invalid_input, "store copy needs two different stores");
  FLEETFIT_TRY(check_source(flags.from));
  FLEETFIT_ASSIGN(const auto counts, app::copy_store(flags.from, flags.to, context.progress()));
  return context.show(app::to_json(counts), copy_text(counts));
}

}  // namespace

void add_store(CLI::App& program, Context& context) {
  auto* store = program.add_subcommand("store", "Stores as a whole");
  store->require_subcommand(1);
  auto [verb, flags] =
      add_verb<CopyFlags>(*store, "copy", "Copy all records to another, empty store");
  verb->add_option("FROM", flags->from, "sqlite:FILE or postgres://…")->required();
  verb->add_option("TO", flags->to, "sqlite:FILE or postgres://…")->required();
  verb->footer(
      "Checkpoints and logs of studies are files beside the store and are not copied.\n"
      "Example:\n  fleetfit store copy sqlite:fleetfit.db postgres://me@db.example/fleet");
  context.on(verb, flags, copy);
}

}  // namespace fleetfit::cli
