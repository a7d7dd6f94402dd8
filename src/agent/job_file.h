#pragma once

#include <filesystem>
#include <string>

#include "fleetfit/agent/agent.h"
#include "fleetfit/core/result.h"
#include "fleetfit/fleet/messages.h"

namespace fleetfit::agent {

/// What a job's process has to know; `job.json` in its folder.
struct JobFile {
  fleet::Assignment assignment = {};
  std::string device = {};
  JobOptions options = {};
};

/// Makes the folder if need be.
Status write_job_file(const std::filesystem::path& folder, const JobFile& file);
Result<JobFile> read_job_file(const std::filesystem::path& folder);

}  // namespace fleetfit::agent
