#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/tune/inference_text.h"
#include "fleetfit/core/fields.h"
#include "fleetfit/core/interrupt.h"

namespace fleetfit::cli {
namespace {

Result<int> run_confirm(Context& context, const app::ConfirmStudyRequest& request) {
  const core::Interrupt interrupt;
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto confirmed,
                  app::confirm_study(workplace, request, context.progress(), interrupt.token()));
  if (context.flags.json) {
    context.print(core::to_json(confirmed));
    return 0;
  }
  std::string text;
  for (const auto& one : confirmed) text += (text.empty() ? "" : "\n") + confirmed_text(one);
  context.print(text);
  return 0;
}

}  // namespace

void add_study_confirm(CLI::App& study, Context& context) {
  auto request = std::make_shared<app::ConfirmStudyRequest>();
  auto* verb = study.add_subcommand(
      "confirm",
      "Run the best network for real as recommended, and compare with what was expected");
  verb->add_option("NAME", request->study, "The study")->required();
  verb->add_option("--seconds", request->seconds, "How long, on each device")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  verb->footer("Example:\n  fleetfit study confirm fashion --seconds 30");
  verb->callback([request, &context] {
    context.action = [request, &context] {
      request->threads = context.threads();
      return run_confirm(context, *request);
    };
  });
}

}  // namespace fleetfit::cli
