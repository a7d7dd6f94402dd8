#pragma once

#include <memory>
#include <string>

#include "cli/program.h"
#include "fleetfit/study/tuning.h"

namespace fleetfit::cli {

/// Why a study that has ended has no best trial.
inline constexpr const char* kNoBestTrial = "no trial keeps the limits of the study";

/// Where the workers of a study run.
struct StudyWorkers {
  std::string executor = "local";  ///< or "slurm"
  std::string folder = {};         ///< that all of them see; empty: beside the store
};

/// To tune the study of this text, whose errors name `file`, with one worker.
Result<study::TuneRequest> study_request(const Context& context, const StudyWorkers& workers,
                                         std::string text, const std::string& file);

/// What starts the workers of the request. The clock is borrowed.
std::unique_ptr<tune::Executor> make_executor(Context& context, const StudyWorkers& workers,
                                              const study::TuneRequest& request,
                                              const core::Clock& clock);

}  // namespace fleetfit::cli
