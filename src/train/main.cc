#include <CLI/CLI.hpp>

#include "fleetfit/core/program.h"
#include "fleetfit/core/version.h"
#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

// Verbs that fleetfit passes on as they are: the user knows them as its own.
bool is_fleetfits(std::string_view verb) { return verb == "train" || verb == "elastify"; }

int parse_and_run(int argc, char** argv) {
  Action action;
  CLI::App program("Trains networks for fleetfit, which starts it by itself.",
                   argc > 1 && is_fleetfits(argv[1]) ? "fleetfit" : "fleetfit-train");
  program.set_version_flag("--version", "fleetfit-train " + std::string(core::version()));
  add_mlp(program, action);
  add_graph_network(program, action);
  add_learned(program, action);
  add_train(program, action);
  add_elastify(program, action);
  add_workload(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    return core::report(error.what(), core::kBadInput);
  }
  if (!action) {
    return core::report("no verb was given; 'fleetfit-train --help' lists them", core::kBadInput);
  }
  const auto status = action();
  return status ? *status : core::report(status.error());
}

}  // namespace
}  // namespace fleetfit::train

int main(int argc, char** argv) {
  return fleetfit::core::run_guarded([&] { return fleetfit::train::parse_and_run(argc, argv); });
}
