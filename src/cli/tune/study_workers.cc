#include "cli/tune/study_workers.h"

#include <unistd.h>

#include <CLI/CLI.hpp>

#include "fleetfit/app/inference_tuning.h"

namespace fleetfit::cli {
namespace {

bool is_on_cluster(const StudyWorkers& workers) { return workers.executor == "slurm"; }

Result<std::filesystem::path> folder_of(const Context& context, const StudyWorkers& workers) {
  auto standard = study::default_study_folder(context.flags.store);
  if (!standard || workers.folder.empty()) return standard;
  return std::filesystem::absolute(workers.folder);
}

// Local workers end with the tuner. Those of a cluster outlive it for a while, for its successor.
std::vector<std::string> worker_command(std::string self, std::string store,
                                        const StudyWorkers& workers, std::string study) {
  std::vector<std::string> command{std::move(self), "--store", std::move(store), "study", "work"};
  if (is_on_cluster(workers)) {
    command.insert(command.end(), {"--idle-limit", "300"});
  } else {
    command.emplace_back("--until-input-ends");
  }
  command.push_back(std::move(study));
  return command;
}

struct WorkFlags {
  std::string study;
  std::string as = "worker";
  std::string folder;
  std::int64_t lease_ms = 10'000;
  std::int64_t store_patience_ms = std::chrono::milliseconds(study::kStorePatience).count();
  std::int64_t idle_limit_s = 0;
  bool until_input_ends = false;
};

Result<int> work(const Context& context, const WorkFlags& flags, const std::stop_token& stop) {
  const core::SystemClock clock;
  FLEETFIT_ASSIGN(auto workplace, app::open_workplace_patiently(context.flags.store, clock, stop));
  study::WorkRequest request{.study = flags.study,
                             .as = flags.as,
                             .folder = flags.folder,
                             .lease = std::chrono::milliseconds(flags.lease_ms),
                             .store_patience = std::chrono::milliseconds(flags.store_patience_ms),
                             .parent = flags.until_input_ends ? STDIN_FILENO : -1};
  if (flags.idle_limit_s > 0) request.idle_limit = std::chrono::seconds(flags.idle_limit_s);
  if (flags.folder.empty()) {
    FLEETFIT_ASSIGN(request.folder, study::default_study_folder(context.flags.store));
  }
  return study::work_on_study(app::study_place(workplace), request, stop).map([] { return 0; });
}

}  // namespace

Result<study::TuneRequest> study_request(const Context& context, const StudyWorkers& workers,
                                         std::string text, const std::string& file) {
  FLEETFIT_ASSIGN(auto study, tune::parse_study(text, file));
  if (context.flags.seed != GlobalFlags{}.seed) study.seed = context.flags.seed;
  FLEETFIT_ASSIGN(auto folder, folder_of(context, workers));
  FLEETFIT_ASSIGN(auto self, own_program());
  auto command = worker_command(std::move(self), store_for_others(context), workers, study.name);
  return study::TuneRequest{.study = std::move(study),
                            .definition = std::move(text),
                            .worker_command = std::move(command),
                            .folder = std::move(folder)};
}

std::unique_ptr<tune::Executor> make_executor(Context& context, const StudyWorkers& workers,
                                              const study::TuneRequest& request,
                                              const core::Clock& clock) {
  if (!is_on_cluster(workers)) return tune::make_local_executor();
  return study::make_slurm_executor(request, clock, context.progress());
}

// Not for people, so --help does not list it: `fleetfit tune` starts its workers with it.
void add_study_work(CLI::App& study, Context& context) {
  auto [verb, flags] =
      add_verb<WorkFlags>(study, "work", "Train trials of a study until it is done");
  verb->group("");
  verb->footer("Example:\n  fleetfit study work fashion --as w9");
  verb->add_option("NAME", flags->study, "The study")->required();
  verb->add_option("--as", flags->as, "How the worker's name begins")->capture_default_str();
  verb->add_option("--folder", flags->folder, "Where checkpoints and logs are kept");
  verb->add_option("--lease-ms", flags->lease_ms, "As `fleetfit tune` was told")
      ->check(CLI::Range(100, 3'600'000));
  verb->add_option("--store-patience-ms", flags->store_patience_ms,
                   "How long the store may be away")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--idle-limit", flags->idle_limit_s,
                   "End after so many seconds with nothing to do; 0: never")
      ->check(CLI::Range(0, 1'000'000));
  verb->add_flag("--until-input-ends", flags->until_input_ends, "End when the standard input does");
  context.on(verb, flags, work);
}

}  // namespace fleetfit::cli
