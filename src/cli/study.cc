#include <CLI/CLI.hpp>

#include "cli/program.h"

namespace fleetfit::cli {

void add_study(CLI::App& program, Context& context) {
  auto* study = program.add_subcommand("study", "Look into tuning studies, and drive them by hand");
  study->footer("Example:\n  fleetfit study list\n  fleetfit study best fashion");
  study->require_subcommand(0, 1);
  study->callback([study, &context] {
    if (!study->get_subcommands().empty()) return;
    context.action = []() -> Result<int> {
      return fail(ErrorCode::invalid_input,
                  "study needs a verb: list, show, best, export, report, create, ask, tell, serve, "
                  "import, confirm or remove");
    };
  });
  add_study_import(*study, context);
  add_study_confirm(*study, context);
  add_study_work(*study, context);
}

}  // namespace fleetfit::cli
