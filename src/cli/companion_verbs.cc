#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/program.h"
#include "fleetfit/app/elsewhere.h"
#include "fleetfit/app/tuning.h"
#include "fleetfit/core/companion.h"
#include "fleetfit/core/interrupt.h"

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

/// Where the companion's work is done.
struct Place {
  std::string executor;
  std::string resources;
  std::string folder;
};

Place take_place(std::vector<std::string>& words) {
  return {take_option(words, "--executor"), take_option(words, "--resources"),
          take_option(words, "--folder")};
}

/// The whole command as a job of a cluster, which goes on where it was after it was killed.
Result<int> run_on_cluster(Context& context, const std::vector<std::string>& arguments,
                           const Place& place) {
  const auto resources =
      tune::parse_resources(place.resources.empty() ? "{}" : place.resources, "--resources");
  if (!resources) return tl::unexpected(resources.error());
  const auto trainer = core::find_companion(kTrainer);
  if (!trainer) return tl::unexpected(trainer.error());
  const auto folder =
      std::filesystem::absolute(place.folder.empty() ? "fleetfit.jobs" : place.folder);
  const core::SystemClock clock;
  const core::Interrupt interrupt;
  const auto executor =
      app::make_slurm_executor({.work = fmt::format("{}", fmt::join(arguments, " ")),
                                .folder = folder,
                                .resources = *resources},
                               clock, context.progress());
  std::vector<std::string> command{trainer->string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (std::ranges::find(command, "--resume") == command.end()) command.emplace_back("--resume");
  const auto output = app::run_elsewhere({.command = std::move(command), .folder = folder},
                                         *executor, context.progress(), interrupt.token());
  if (!output) return tl::unexpected(output.error());
  context.print(*output);
  return 0;
}

/// OpenMP's threads would otherwise spin all the time between operators.
void calm_openmp() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the program is about to be replaced
  ::setenv("GOMP_SPINCOUNT", "5000", /*overwrite=*/0);
}

Result<int> do_companions_work(Context& context, std::vector<std::string> arguments) {
  const auto place = take_place(arguments);
  if (place.executor == "slurm") return run_on_cluster(context, arguments, place);
  if (!place.executor.empty() && place.executor != "local")
    return fail(ErrorCode::invalid_input,
                fmt::format("--executor: {} is neither local nor slurm", place.executor));
  calm_openmp();
  return tl::unexpected(core::become_companion(kTrainer, arguments));
}

/// A verb whose flags, help and work are the companion's.
void add_companion_verb(CLI::App& program, Context& context, const char* name, const char* what) {
  auto* verb = program.add_subcommand(name, what);
  verb->set_help_flag();
  verb->fallthrough(false);
  verb->prefix_command();
  verb->callback([verb, &context] {
    context.action = [verb, &context] {
      return do_companions_work(context, arguments_of(*verb, context.flags, GlobalFlags{}));
    };
  });
}

/// The agent is a program of its own on devices; all flags are its own.
void add_agent(CLI::App& program, Context& context) {
  auto* verb = program.add_subcommand("agent", "Take jobs of a fleet's server on this device");
  verb->set_help_flag();
  verb->fallthrough(false);
  verb->prefix_command();
  verb->callback([verb, &context] {
    context.action = [verb]() -> Result<int> {
      return tl::unexpected(core::become_companion(kAgent, verb->remaining()));
    };
  });
}

}  // namespace

void add_companion_verbs(CLI::App& program, Context& context) {
  add_companion_verb(program, context, "train", "Train a network on labelled images");
  add_companion_verb(program, context, "elastify", "Make a trained network elastic");
  add_agent(program, context);
}

}  // namespace fleetfit::cli
