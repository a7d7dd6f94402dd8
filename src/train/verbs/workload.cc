#include "fleetfit/train/workload.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "train/verbs/verb.h"

namespace fleetfit::train {
namespace {

constexpr const char* kVariable = "FLEETFIT_TRIAL";

void say_model(const std::string& file) { say({{"model", file}}); }

void say_epoch(const WorkloadEpoch& epoch) {
  say({{"epoch", epoch.epoch}, {"accuracy", epoch.accuracy}, {"loss", epoch.loss}});
}

nlohmann::json result_of(const WorkloadOutcome& outcome) {
  return {{"result",
           {{"accuracy", outcome.accuracy},
            {"loss", outcome.loss},
            {"model", outcome.model_file},
            {"epochs", outcome.epochs},
            {"samples", outcome.samples},
            {"resumed_at", outcome.resumed_at}}}};
}

Result<int> run_trial(const std::string& name) {
  FLEETFIT_ASSIGN(const auto workload, workloads::find_workload(name));
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet
  const char* const document = std::getenv(kVariable);
  if (document == nullptr)
    return refuse(
        "the variable FLEETFIT_TRIAL is not set: workloads are trials of a study "
        "(docs/workloads.md)");
  FLEETFIT_ASSIGN(const auto request, workloads::read_trial(*workload, document));
  const CommonFlags flags{.quiet = true,
                          .threads = static_cast<int>(request.settings.integer("threads"))};
  Work work(flags);
  const WorkloadListener listener{.on_untrained = say_model, .on_epoch = say_epoch};
  const auto context = work.context();
  FLEETFIT_ASSIGN(const auto outcome,
                  core::within(name, run_workload(*workload, request, listener, context)));
  if (!outcome.interrupted) {
    say(result_of(outcome));
    return 0;
  }
  return work.finish("interrupted; what was learned is in the checkpoint");
}

}  // namespace

void add_workload(CLI::App& program, Action& action) {
  auto* verb = program.add_subcommand("workload", "Run a built-in workload as a trial of a study");
  const auto name = std::make_shared<std::string>();  // shared by the verb and its action
  verb->add_option("NAME", *name, "'fleetfit workload list' names them")->required();
  verb->footer(
      "Example:\n"
      "  FLEETFIT_TRIAL='{\"params\": {\"layers\": 18}, \"budget\": {\"epochs\": 2}, "
      "\"checkpoint_dir\": \"trial\"}' \\\n"
      "    fleetfit-train workload resnet-fashion-mnist");
  verb->callback([&action, name] { action = [name] { return run_trial(*name); }; });
}

}  // namespace fleetfit::train
