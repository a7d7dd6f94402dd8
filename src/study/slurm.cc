#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "fleetfit/core/sha256.h"
#include "fleetfit/study/tuning.h"
#include "fleetfit/tune/slurm_executor.h"

namespace fleetfit::study {
namespace {

// The same for the same work, so that a process finds the jobs that a killed one left.
std::string job_name(const ClusterRequest& request) {
  std::string name = request.work;
  const auto is_other = [](unsigned char c) { return std::isalnum(c) == 0; };
  std::ranges::replace_if(name, is_other, '-');
  const auto place = core::sha256_hex(request.folder.string() + "\n" + request.work);
  return fmt::format("fleetfit-{}-{}", name.substr(0, 40), place.substr(0, 8));
}

}  // namespace

std::unique_ptr<tune::Executor> make_slurm_executor(const ClusterRequest& request,
                                                    const core::Clock& clock,
                                                    core::Progress& progress) {
  const auto say = [&progress](std::string_view text) {
    progress.receive({.kind = core::ProgressKind::message, .name = "slurm", .text = text});
  };
  return tune::make_slurm_executor(clock, {.job_name = job_name(request),
                                           .folder = request.folder / "slurm",
                                           .resources = request.resources,
                                           .most_at_once = request.most_at_once,
                                           .say = say});
}

std::unique_ptr<tune::Executor> make_slurm_executor(const TuneRequest& request,
                                                    const core::Clock& clock,
                                                    core::Progress& progress) {
  return make_slurm_executor(ClusterRequest{.work = request.study.name,
                                            .folder = request.folder,
                                            .resources = request.study.resources},
                             clock, progress);
}

}  // namespace fleetfit::study
