#include <CLI/CLI.hpp>

#include "cli/program.h"

namespace fleetfit::cli {

void add_learn(CLI::App& program, Context& context) {
  auto* learn =
      program.add_subcommand("learn", "The best design for a new device at once, by networks");
  learn->require_subcommand(1);
  add_learn_features(*learn, context);
  add_learn_networks(*learn, context);
}

}  // namespace fleetfit::cli
