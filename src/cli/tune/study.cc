#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/tune/study_text.h"
#include "fleetfit/study/studies.h"

namespace fleetfit::cli {
namespace {

/// Prints as JSON, or as `text` puts it.
template <class T, class Text>
Result<int> answer(const Context& context, const Result<T>& result, Text text) {
  FLEETFIT_TRY(result);
  if (context.flags.json) {
    context.print(to_json(*result));
  } else {
    context.print(text(*result));
  }
  return 0;
}

/// What several verbs take: a study, and a file to write.
struct StudyFlags {
  std::string name;
  std::string output;
  bool all = false;
};

CLI::App* add_verb(CLI::App& study, const std::string& verb, const std::string& what,
                   StudyFlags& flags) {
  auto* added = study.add_subcommand(verb, what);
  added->add_option("NAME", flags.name, "The study")->required();
  return added;
}

void add_list(CLI::App& study, Context& context) {
  auto* verb = study.add_subcommand("list", "List the studies of the store");
  verb->footer("Example:\n  fleetfit study list\n  fleetfit study list --json");
  verb->callback([&context] {
    context.action = [&context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      return answer(context, study::list_studies(workplace.store->studies()), studies_text);
    };
  });
}

void add_show(CLI::App& study, Context& context) {
  auto flags = std::make_shared<StudyFlags>();
  auto* verb =
      add_verb(study, "show", "Say how a study stands: trials, rungs, the best so far", *flags);
  verb->add_flag(
      "--all", flags->all,
      fmt::format("All trials in the JSON document, not the newest {}", study::kTrialsShown));
  verb->footer(
      "Example:\n  fleetfit study show fashion\n  fleetfit study show fashion --all --json");
  verb->callback([flags, &context] {
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      return answer(context,
                    study::show_study(workplace.store->studies(), flags->name, {.all = flags->all}),
                    study_text);
    };
  });
}

void add_best(CLI::App& study, Context& context) {
  auto flags = std::make_shared<StudyFlags>();
  auto* verb =
      add_verb(study, "best", "Say which trial is best, and how to deploy its network", *flags);
  verb->footer(
      "Of several objectives, it prints the whole Pareto set. If no trial keeps the study's "
      "limits, "
      "it\nprints the nearest one and ends with status 1.\n\nExample:\n  fleetfit study best "
      "fashion\n  fleetfit study best fashion --json");
  verb->callback([flags, &context] {
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      const auto best = study::best_of_study(workplace.store->studies(), flags->name);
      auto printed = answer(context, best, best_text);
      if (!printed) return printed;
      return best->best ? 0 : 1;
    };
  });
}

void add_export(CLI::App& study, Context& context) {
  auto flags = std::make_shared<StudyFlags>();
  auto* verb = add_verb(study, "export", "Write all trials of a study as a table", *flags);
  verb->add_option("-o,--output", flags->output, "The CSV file to write")->required();
  verb->footer("Example:\n  fleetfit study export fashion -o fashion.csv");
  verb->callback([flags, &context] {
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      return answer(context,
                    study::export_study(workplace.store->studies(), flags->name, flags->output),
                    [](const study::ExportedStudy& written) {
                      return fmt::format("{}: {} trials\n", written.file, written.trials);
                    });
    };
  });
}

void add_report(CLI::App& study, Context& context) {
  auto flags = std::make_shared<StudyFlags>();
  auto* verb = add_verb(study, "report", "Write a study as a page of HTML with charts", *flags);
  verb->add_option("-o,--output", flags->output, "The page to write")->required();
  verb->footer("Example:\n  fleetfit study report fashion -o fashion.html");
  verb->callback([flags, &context] {
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      return answer(context,
                    study::report_study(workplace.store->studies(), flags->name, flags->output),
                    report_text);
    };
  });
}

void add_remove(CLI::App& study, Context& context) {
  auto flags = std::make_shared<StudyFlags>();
  auto* verb = add_verb(study, "remove",
                        "Forget a study and its trials; what was found of inference stays", *flags);
  verb->footer("Example:\n  fleetfit study remove fashion");
  verb->callback([flags, &context] {
    context.action = [flags, &context]() -> Result<int> {
      FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
      FLEETFIT_TRY(study::remove_study(workplace.store->studies(), flags->name));
      if (context.flags.json) context.print(nlohmann::ordered_json{{"removed", flags->name}});
      return 0;
    };
  });
}

}  // namespace

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
  add_list(*study, context);
  add_show(*study, context);
  add_best(*study, context);
  add_export(*study, context);
  add_report(*study, context);
  add_study_dialogue(*study, context);
  add_study_import(*study, context);
  add_study_confirm(*study, context);
  add_remove(*study, context);
  add_study_work(*study, context);
}

}  // namespace fleetfit::cli
