#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"
#include "cli/tune/study_text.h"
#include "cli/tune/study_workers.h"
#include "fleetfit/core/file.h"
#include "fleetfit/study/importing.h"
#include "fleetfit/study/studies.h"

namespace fleetfit::cli {
namespace {

/// What several verbs take: a study, and a file to write.
struct StudyFlags {
  std::string name;
  std::string output;
  bool all = false;
};

Verb<StudyFlags> verb_of_study(CLI::App& study, const std::string& verb, const std::string& what) {
  auto added = add_verb<StudyFlags>(study, verb, what);
  added.verb->add_option("NAME", added.flags->name, "The study")->required();
  return added;
}

void add_list(CLI::App& study, Context& context) {
  auto* verb = study.add_subcommand("list", "List the studies of the store");
  verb->footer("Example:\n  fleetfit study list\n  fleetfit study list --json");
  context.on(verb, [&context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    return context.show(study::list_studies(workplace.store->studies()), studies_text);
  });
}

void add_show(CLI::App& study, Context& context) {
  auto [verb, flags] =
      verb_of_study(study, "show", "Say how a study stands: trials, rungs, the best so far");
  verb->add_flag(
      "--all", flags->all,
      fmt::format("All trials in the JSON document, not the newest {}", study::kTrialsShown));
  verb->footer(
      "Example:\n  fleetfit study show fashion\n  fleetfit study show fashion --all --json");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    return context.show(
        study::show_study(workplace.store->studies(), flags->name, {.all = flags->all}),
        study_text);
  });
}

void add_best(CLI::App& study, Context& context) {
  auto [verb, flags] =
      verb_of_study(study, "best", "Say which trial is best, and how to deploy its network");
  verb->footer(
      "Of several objectives, it prints the whole Pareto set. If no trial keeps the study's "
      "limits, "
      "it\nprints the nearest one and ends with status 1.\n\nExample:\n  fleetfit study best "
      "fashion\n  fleetfit study best fashion --json");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    FLEETFIT_ASSIGN(const auto best, study::best_of_study(workplace.store->studies(), flags->name));
    context.show(best, best_text);
    return done_if(best.best.has_value(), kNoBestTrial);
  });
}

void add_export(CLI::App& study, Context& context) {
  auto [verb, flags] = verb_of_study(study, "export", "Write all trials of a study as a table");
  verb->add_option("-o,--output", flags->output, "The CSV file to write")->required();
  verb->footer("Example:\n  fleetfit study export fashion -o fashion.csv");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    return context.show(study::export_study(workplace.store->studies(), flags->name, flags->output),
                        [](const study::ExportedStudy& written) {
                          return fmt::format("{}: {} trials\n", written.file, written.trials);
                        });
  });
}

void add_report(CLI::App& study, Context& context) {
  auto [verb, flags] =
      verb_of_study(study, "report", "Write a study as a page of HTML with charts");
  verb->add_option("-o,--output", flags->output, "The page to write")->required();
  verb->footer("Example:\n  fleetfit study report fashion -o fashion.html");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    return context.show(study::report_study(workplace.store->studies(), flags->name, flags->output),
                        report_text);
  });
}

void add_remove(CLI::App& study, Context& context) {
  auto [verb, flags] = verb_of_study(
      study, "remove", "Forget a study and its trials; what was found of inference stays");
  verb->footer("Example:\n  fleetfit study remove fashion");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    FLEETFIT_TRY(study::remove_study(workplace.store->studies(), flags->name));
    if (context.flags.json) context.print(nlohmann::ordered_json{{"removed", flags->name}});
    return done();
  });
}

Result<Verdict> run_confirm(Context& context, app::ConfirmStudyRequest& request,
                            const std::stop_token& stop) {
  request.threads = context.threads();
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(const auto confirmed,
                  app::confirm_study(workplace, request, context.progress(), stop));
  using core::to_json;
  auto json = nlohmann::ordered_json::array();
  std::string text;
  for (const auto& one : confirmed) {
    json.push_back(to_json(one));
    text += (text.empty() ? "" : "\n") + confirmed_text(one);
  }
  return context.show(json, text);
}

void add_confirm(CLI::App& study, Context& context) {
  auto [verb, request] = add_verb<app::ConfirmStudyRequest>(
      study, "confirm",
      "Run the best network for real as recommended, and compare with what was expected");
  verb->add_option("NAME", request->study, "The study")->required();
  verb->add_option("--seconds", request->seconds, "How long, on each device")
      ->check(CLI::Range(0.1, 86400.0));
  verb->footer("Example:\n  fleetfit study confirm fashion --seconds 30");
  context.on(verb, request, run_confirm);
}

struct ImportFlags {
  std::string file;
  std::string study;
  std::string name;
  std::string command;
  std::string output;
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string import_text(const study::ImportedStudy& study) {
  std::string text = fmt::format("{}: {} trials: {} finished, {} stopped, {} failed\n", study.name,
                                 study.trials.all(), study.trials.finished, study.trials.stopped,
                                 study.trials.failed);
  if (study.left_out > 0)
    text += fmt::format("{} left out, which had not ended or have other parameters than the rest\n",
                        study.left_out);
  return text;
}

Result<Verdict> import_study(const Context& context, const ImportFlags& flags) {
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto imported,
                  study::import_optuna_study(app::study_place(workplace),
                                             {.file = flags.file,
                                              .study = flags.study,
                                              .name = flags.name,
                                              .command = words_of(flags.command)}));
  if (!flags.output.empty()) FLEETFIT_TRY(core::write_file(flags.output, imported.definition));
  return context.show(imported, import_text);
}

void add_import(CLI::App& study, Context& context) {
  auto [verb, flags] =
      add_verb<ImportFlags>(study, "import", "Bring in a study of Optuna 3 from its SQLite file");
  verb->add_option("FILE", flags->file, "The file that Optuna keeps the study in")->required();
  verb->add_option("--study", flags->study, "Which study, if the file has several");
  verb->add_option("--name", flags->name, "Its name here; the same if not said");
  verb->add_option("--command", flags->command,
                   "The program that trains, with arguments, for `tune` to go on with it");
  verb->add_option("-o,--output", flags->output, "Write the study file that was made for it");
  verb->footer(
      "Example:\n  fleetfit study import optuna.db --study mnist --name mnist-2\n"
      "  fleetfit study import optuna.db --command 'python3 train.py' -o mnist.yaml");
  context.on(verb,
             [flags, &context]() -> Result<Verdict> { return import_study(context, *flags); });
}

}  // namespace

void add_study(CLI::App& program, Context& context) {
  auto& study =
      add_group(program, context, "study", "Look into tuning studies, and drive them by hand",
                "Example:\n  fleetfit study list\n  fleetfit study best fashion");
  add_list(study, context);
  add_show(study, context);
  add_best(study, context);
  add_export(study, context);
  add_report(study, context);
  add_study_dialogue(study, context);
  add_import(study, context);
  add_confirm(study, context);
  add_remove(study, context);
  add_study_work(study, context);
}

}  // namespace fleetfit::cli
