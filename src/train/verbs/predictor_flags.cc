#include "train/verbs/predictor_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

namespace fleetfit::train {
namespace {

void add_flags(CLI::App& verb, PredictorFlags& flags) {
  verb.add_option("SAMPLES", flags.samples, "File of samples")->required();
  verb.add_option("-o,--output", flags.output, "File to write")->required();
  verb.add_option("--epochs", flags.training.max_epochs, "Most epochs of one training")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--trials", flags.training.trials, "Settings to try")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_option("--max-weights", flags.training.max_weights, "Most weights of a network")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  verb.add_option("--budget-s", flags.budget_s, "Seconds after which training ends; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  add_common_flags(verb, flags.common);
}

}  // namespace

TrainingOptions PredictorFlags::options(const Work& work, double share) const {
  auto options = training;
  options.seed = common.seed;
  if (budget_s > 0) {
    const double left_s = std::max(budget_s - work.elapsed_s(), 0.0);
    options.budget =
        std::chrono::nanoseconds(std::llround(std::min(left_s, budget_s * share) * 1e9));
  }
  return options;
}

void add_predictor_verb(CLI::App& program, Action& action, const std::string& name,
                        const std::string& summary, Result<int> (*run)(const PredictorFlags&)) {
  auto* verb = program.add_subcommand(name, summary);
  const auto flags = std::make_shared<PredictorFlags>();  // shared by the verb and its action
  add_flags(*verb, *flags);
  verb->footer(fmt::format("Example:\n  fleetfit-train {} samples.json -o network.json", name));
  verb->callback([&action, flags, run] { action = [flags, run] { return run(*flags); }; });
}

}  // namespace fleetfit::train
