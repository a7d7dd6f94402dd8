#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/file.h"
#include "fleetfit/study/importing.h"

namespace fleetfit::cli {
namespace {

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

Result<int> import_study(const Context& context, const ImportFlags& flags) {
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  FLEETFIT_ASSIGN(const auto imported,
                  study::import_optuna_study(app::study_place(workplace),
                                             {.file = flags.file,
                                              .study = flags.study,
                                              .name = flags.name,
                                              .command = words_of(flags.command)}));
  if (!flags.output.empty()) FLEETFIT_TRY(core::write_file(flags.output, imported.definition));
  if (context.flags.json) {
    context.print(to_json(imported));
  } else {
    context.print(import_text(imported));
  }
  return 0;
}

}  // namespace

void add_study_import(CLI::App& study, Context& context) {
  auto flags = std::make_shared<ImportFlags>();
  auto* verb = study.add_subcommand("import", "Bring in a study of Optuna 3 from its SQLite file");
  verb->add_option("FILE", flags->file, "The file that Optuna keeps the study in")->required();
  verb->add_option("--study", flags->study, "Which study, if the file has several");
  verb->add_option("--name", flags->name, "Its name here; the same if not said");
  verb->add_option("--command", flags->command,
                   "The program that trains, with arguments, for `tune` to go on with it");
  verb->add_option("-o,--output", flags->output, "Write the study file that was made for it");
  verb->footer(
      "Example:\n  fleetfit study import optuna.db --study mnist --name mnist-2\n"
      "  fleetfit study import optuna.db --command 'python3 train.py' -o mnist.yaml");
  verb->callback([flags, &context] {
    context.action = [flags, &context]() -> Result<int> { return import_study(context, *flags); };
  });
}

}  // namespace fleetfit::cli
