#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "cli/program.h"
#include "cli/tune/study_workers.h"
#include "fleetfit/app/inference_tuning.h"
#include "fleetfit/core/companion.h"
#include "fleetfit/study/training.h"

namespace fleetfit::cli {
namespace {

constexpr const char* kTrainer = "fleetfit-train";
constexpr const char* kAgent = "fleetfit-agent";

std::vector<std::string> arguments_of(const CLI::App& verb, const GlobalFlags& flags,
                                      const GlobalFlags& defaults) {
  std::vector<std::string> arguments{verb.get_name()};
  for (const auto& word : verb.remaining()) arguments.push_back(word);
  if (flags.json) arguments.emplace_back("--json");
  if (flags.quiet) arguments.emplace_back("--quiet");
  if (flags.seed != defaults.seed) arguments.push_back("--seed=" + std::to_string(flags.seed));
  if (flags.threads != defaults.threads)
    arguments.push_back("--threads=" + std::to_string(flags.threads));
  return arguments;
}

/// Takes "--name value" or "--name=value" out of the words; "" if it is not there.
std::string take_option(std::vector<std::string>& words, const std::string& name) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word->starts_with(name + "=")) {
      auto value = word->substr(name.size() + 1);
      words.erase(word);
      return value;
    }
    if (*word != name || word + 1 == words.end()) continue;
    auto value = *(word + 1);
    words.erase(word, word + 2);
    return value;
  }
  return {};
}

/// The value of "-o FILE", "--output FILE" or "--output=FILE"; "" if it is not there.
std::string output_of(std::vector<std::string> words) {
  auto output = take_option(words, "--output");
  return output.empty() ? take_option(words, "-o") : output;
}

/// Flags of the companion that say how much is to be seen of it.
void heed_silence(Context& context, const std::vector<std::string>& words) {
  const auto has = [&](const char* flag) { return std::ranges::find(words, flag) != words.end(); };
  context.flags.json = context.flags.json || has("--json");
  context.flags.quiet = context.flags.quiet || has("--quiet");
}

/// What the companion says of the flags, which it alone knows: nothing if a study can be made.
Result<core::CompanionOutput> check_flags(const study::Training& training) {
  std::vector<std::string> arguments{training.verb};
  arguments.insert(arguments.end(), training.flags.begin(), training.flags.end());
  arguments.emplace_back("--check-flags");
  return core::run_companion(kTrainer, arguments);
}

/// The whole command as a study of one trial, here or on a cluster.
Result<Verdict> run_as_study(Context& context, const StudyWorkers& where,
                             const study::Training& training) {
  FLEETFIT_ASSIGN(const auto checked, check_flags(training));
  if (checked.status.signal != 0)
    return fail(ErrorCode::device_failed,
                fmt::format("{} ended by {}", kTrainer, core::to_string(checked.status)));
  context.print(checked.output);  // the help, if that was asked for
  if (!checked.status.succeeded() || !checked.output.empty())
    return Verdict::of_other_program(checked.status.code);
  heed_silence(context, training.flags);
  FLEETFIT_ASSIGN(auto text, study::study_of_training(training));
  FLEETFIT_ASSIGN(auto request, study_request(context, where, std::move(text), training.verb));
  const core::Interrupt interrupt;
  FLEETFIT_ASSIGN(auto workplace, context.open_workplace());
  const auto executor = make_executor(context, where, request, workplace.clock);
  FLEETFIT_ASSIGN(const auto told,
                  study::run_training(app::study_place(workplace), training, std::move(request),
                                      {.executor = *executor, .progress = context.progress()},
                                      interrupt.token()));
  context.print(told);
  return done();
}

/// OpenMP's threads would otherwise spin all the time between operators.
void calm_openmp() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the program is about to be replaced
  ::setenv("GOMP_SPINCOUNT", "5000", /*overwrite=*/0);
}

/// Takes the flags that are ours out of the companion's: where it is done, and who keeps account.
Result<Verdict> do_companions_work(Context& context, std::vector<std::string> arguments) {
  const auto executor = take_option(arguments, "--executor");
  const auto store = take_option(arguments, "--store");
  const auto resources = take_option(arguments, "--resources");
  const auto folder = take_option(arguments, "--folder");
  if (!executor.empty() && executor != "local" && executor != "slurm")
    return fail(ErrorCode::invalid_input,
                fmt::format("--executor: {} is neither local nor slurm", executor));
  if (!store.empty()) context.flags.store = store;
  const auto output = output_of(arguments);
  const bool is_recorded = !executor.empty() || context.flags.store != GlobalFlags{}.store;
  // Without a file to write, the companion says what is wrong.
  if (is_recorded && !output.empty())
    return run_as_study(context, {.executor = executor, .folder = folder},
                        {.verb = arguments.front(),
                         .flags = {arguments.begin() + 1, arguments.end()},
                         .output = output,
                         .resources = resources});
  calm_openmp();
  return tl::unexpected(core::become_companion(kTrainer, arguments));
}

/// A verb whose flags, help and work are the companion's.
void add_companion_verb(CLI::App& program, Context& context, const char* name, const char* what) {
  auto* verb = program.add_subcommand(name, what);
  verb->set_help_flag();
  verb->fallthrough(false);
  verb->prefix_command();
  context.on(verb, [verb, &context] {
    return do_companions_work(context, arguments_of(*verb, context.flags, GlobalFlags{}));
  });
}

/// The agent is a program of its own on devices; all flags are its own.
void add_agent(CLI::App& program, Context& context) {
  auto* verb = program.add_subcommand("agent", "Take jobs of a fleet's server on this device");
  verb->set_help_flag();
  verb->fallthrough(false);
  verb->prefix_command();
  context.on(verb, [verb]() -> Result<Verdict> {
    return tl::unexpected(core::become_companion(kAgent, verb->remaining()));
  });
}

}  // namespace

void add_companion_verbs(CLI::App& program, Context& context) {
  add_companion_verb(program, context, "train", "Train a network on labelled images");
  add_companion_verb(program, context, "elastify", "Make a trained network elastic");
  add_agent(program, context);
}

}  // namespace fleetfit::cli
