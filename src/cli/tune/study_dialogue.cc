#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "cli/tune/study_text.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/json.h"
#include "fleetfit/study/dialogue.h"

namespace fleetfit::cli {
namespace {

struct DialogueFlags {
  std::string study;
  std::string file;
  std::size_t count = 1;
  std::string trial;
  std::string values;
  study::DialogueOptions options;
};

void add_options(CLI::App& verb, DialogueFlags& flags) {
  verb.add_option("NAME", flags.study, "The study")->required();
  verb.add_option("--worker", flags.options.worker, "Who evaluates, as it is shown to people");
  verb.add_option("--lease", flags.options.lease_s,
                  "Seconds after which a trial that was not told is given to another one who asks; "
                  "without: never")
      ->check(CLI::PositiveNumber);
}

void add_create(CLI::App& study, Context& context) {
  auto [verb, flags] = add_verb<DialogueFlags>(
      study, "create", "Put a study into the store, to be driven by ask and tell");
  verb->add_option("FILE", flags->file, "A study file (docs/formats/study.md)")->required();
  verb->footer("Example:\n  fleetfit study create branin.yaml");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
    FLEETFIT_ASSIGN(const auto created,
                    study::create_study(app::study_place(workplace), flags->file));
    return context.show(created, "study " + created.study.name + " is there; ask for its trials\n");
  });
}

/// One trial as a document of its own, so that scripts need no loop.
nlohmann::ordered_json asked_json(const DialogueFlags& flags, const study::Asked& asked) {
  auto json = to_json(asked);
  if (flags.count != 1 || asked.trials.empty()) return json;
  auto trial = json["trials"][0];
  trial["done"] = json["done"];
  return trial;
}

Result<Verdict> ask(Context& context, const DialogueFlags& flags) {
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(auto dialogue, study::StudyDialogue::open(app::study_place(workplace),
                                                            flags.study, flags.options));
  FLEETFIT_ASSIGN(const auto asked, dialogue.ask(flags.count));
  FLEETFIT_TRY(dialogue.let_others_decide());
  return context.show(asked_json(flags, asked), asked_text(asked));
}

void add_ask(CLI::App& study, Context& context) {
  auto [verb, flags] = add_verb<DialogueFlags>(
      study, "ask", "Get the next trial of a study, to evaluate it yourself");
  add_options(*verb, *flags);
  verb->add_option("--count", flags->count, "So many trials at once")
      ->check(CLI::Range(1, 100'000));
  verb->footer(
      "Each call reads the study's history: with many trials, ask for many at once, or use 'study "
      "serve'.\n\nExample:\n  fleetfit study ask branin --json\n  fleetfit study ask branin "
      "--count "
      "20 --json");
  context.on(verb, flags, ask);
}

Result<std::vector<study::ToldValues>> values_to_tell(const DialogueFlags& flags) {
  if (flags.trial == "-") return study::read_told_lines(std::cin);
  std::int64_t trial = 0;
  const auto* end = flags.trial.data() + flags.trial.size();
  const auto parsed = std::from_chars(flags.trial.data(), end, trial);
  if (parsed.ec != std::errc() || parsed.ptr != end || trial < 0)
    return fail(ErrorCode::invalid_input,
                "TRIAL: expected a trial's number, or - for lines of JSON");
  if (flags.values.empty()) return fail(ErrorCode::invalid_input, "--values is missing");
  FLEETFIT_ASSIGN(const auto document, core::parse_json(flags.values, "--values"));
  FLEETFIT_ASSIGN(auto values,
                  study::told_values_from_json(trial, core::JsonView(document, "--values")));
  return std::vector{std::move(values)};
}

Result<Verdict> tell(Context& context, const DialogueFlags& flags) {
  FLEETFIT_ASSIGN(const auto values, values_to_tell(flags));
  FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
  FLEETFIT_ASSIGN(auto dialogue, study::StudyDialogue::open(app::study_place(workplace),
                                                            flags.study, flags.options));
  FLEETFIT_ASSIGN(const auto told, dialogue.tell(values));
  FLEETFIT_TRY(dialogue.settle());
  return context.show(told, told_text);
}

void add_tell(CLI::App& study, Context& context) {
  auto [verb, flags] =
      add_verb<DialogueFlags>(study, "tell", "Say what a trial that you asked for has reached");
  verb->add_option("NAME", flags->study, "The study")->required();
  verb->add_option("TRIAL", flags->trial,
                   "Its number; or -: lines {\"trial\": 3, \"values\": {…}} from standard input")
      ->required();
  verb->add_option("--values", flags->values,
                   "JSON: {\"accuracy\": 0.9}, also loss, time_s, energy_j and any number that the "
                   "objective names; or {\"failed\": \"why\"}")
      ->type_name("JSON");
  verb->footer(
      "Example:\n  fleetfit study tell branin 3 --values '{\"accuracy\": 0.91, \"time_s\": 12}'\n"
      "  fleetfit study tell branin 4 --values '{\"failed\": \"out of memory\"}'\n"
      "  fleetfit study tell branin - < results.jsonl");
  context.on(verb, flags, tell);
}

void add_serve(CLI::App& study, Context& context) {
  auto [verb, flags] = add_verb<DialogueFlags>(
      study, "serve", "Answer questions in lines of JSON on standard input, until it ends");
  add_options(*verb, *flags);
  verb->footer(
      "{\"ask\": 2} gives two trials, {\"tell\": {\"trial\": 3, \"values\": {\"accuracy\": 0.9}}} "
      "takes a result (or a\nlist of them). It reads the study's "
      "history once only.\n\nExample:\n  echo '{\"ask\": 2}' | fleetfit study serve branin");
  context.on(verb, [flags, &context]() -> Result<Verdict> {
    FLEETFIT_ASSIGN(auto workplace, context.open_existing_workplace());
    FLEETFIT_TRY(study::serve_study(app::study_place(workplace), flags->study, flags->options,
                                    std::cin, std::cout));
    return done();
  });
}

}  // namespace

void add_study_dialogue(CLI::App& study, Context& context) {
  add_create(study, context);
  add_ask(study, context);
  add_tell(study, context);
  add_serve(study, context);
}

}  // namespace fleetfit::cli
