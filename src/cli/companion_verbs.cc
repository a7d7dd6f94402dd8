#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/program.h"
#include "fleetfit/core/companion.h"

namespace fleetfit::cli {
namespace {

constexpr const char* kTrainer = "fleetfit-train";

std::vector<std::string> arguments_of(const CLI::App& verb, const GlobalFlags& flags,
                                      const GlobalFlags& defaults) {
  std::vector<std::string> arguments{verb.get_name()};
  for (const auto& word : verb.remaining()) arguments.push_back(word);
  if (flags.json) arguments.emplace_back("--json");
  if (flags.quiet) arguments.emplace_back("--quiet");
  if (flags.seed != defaults.seed) arguments.push_back("--seed=" + std::to_string(flags.seed));
  if (flags.threads != defaults.threads)
    arguments.push_back("--threads=" + std::to_string(flags.threads));
  return arguments;
}

/// OpenMP's threads would otherwise spin all the time between operators.
void calm_openmp() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the program is about to be replaced
  ::setenv("GOMP_SPINCOUNT", "5000", /*overwrite=*/0);
}

/// A verb whose flags, help and work are the companion's.
void add_companion_verb(CLI::App& program, Context& context, const char* name, const char* what) {
  auto* verb = program.add_subcommand(name, what);
  verb->set_help_flag();
  verb->fallthrough(false);
  verb->prefix_command();
  verb->callback([verb, &context] {
    context.action = [verb, &context]() -> Result<int> {
      calm_openmp();
      return tl::unexpected(
          core::become_companion(kTrainer, arguments_of(*verb, context.flags, GlobalFlags{})));
    };
  });
}

}  // namespace

void add_companion_verbs(CLI::App& program, Context& context) {
  add_companion_verb(program, context, "train", "Train a network on labelled images");
  add_companion_verb(program, context, "elastify", "Make a trained network elastic");
}

}  // namespace fleetfit::cli
