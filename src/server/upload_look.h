#pragma once

#include <filesystem>
#include <string>

#include "fleetfit/core/result.h"
#include "fleetfit/server/fleet_api.h"

namespace fleetfit::server {

/// `kind_of_upload` in a process of its own, if there is a program for it: a file that makes it
/// crash, or wait, or take more memory than it may, is a refused file and nothing else.
Result<std::string> look_into_upload(const std::filesystem::path& file, const std::string& name,
                                     const UploadLook& look);

}  // namespace fleetfit::server
