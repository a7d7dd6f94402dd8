#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "fleetfit/core/progress.h"
#include "fleetfit/core/result.h"
#include "fleetfit/tune/executor.h"

/// Use case: a command that runs on another machine, as one job of a cluster.
namespace fleetfit::app {

struct ElsewhereRequest {
  std::vector<std::string> command = {};  ///< that goes on where it was when it is started anew
  std::filesystem::path folder = {};      ///< that both machines see; for the command's output
  int attempts = 3;
};

/// What the command has printed on its standard output. Fails with `device_failed` and what it said
/// last if it failed, with `cancelled` when stopped, which cancels the job. The executor is
/// borrowed.
Result<std::string> run_elsewhere(const ElsewhereRequest& request, tune::Executor& executor,
                                  core::Progress& progress, const std::stop_token& stop);

}  // namespace fleetfit::app
