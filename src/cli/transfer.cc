#include <CLI/CLI.hpp>

#include "cli/program.h"

namespace fleetfit::cli {

void add_transfer(CLI::App& program, Context& context) {
  auto* transfer =
      program.add_subcommand("transfer", "From devices that are known to one that is not");
  transfer->require_subcommand(1);
  add_transfer_fewshot(*transfer, context);
}

}  // namespace fleetfit::cli
