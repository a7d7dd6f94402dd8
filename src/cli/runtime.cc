#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/program.h"

namespace fleetfit::cli {

// Not for people, so --help does not list it: fleetfit starts itself with this verb.
void add_runtime(CLI::App& program, Context& context) {
  auto* verb = program.add_subcommand(
      "runtime", "Execute models for another process (docs/formats/runtime.md)");
  verb->group("");
  verb->footer("Example:\n  fleetfit device add other --runtime 'exec:fleetfit runtime'");
  verb->callback([&context] {
    context.action = []() -> Result<int> {
      return app::serve_engine(std::cin, std::cout).map([] { return 0; });
    };
  });
}

}  // namespace fleetfit::cli
