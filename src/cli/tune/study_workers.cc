#include "cli/tune/study_workers.h"

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

}  // namespace fleetfit::cli
