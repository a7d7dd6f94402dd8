#pragma once

#include <filesystem>

#include "fleetfit/core/result.h"

/// Names that last. Errors are those of file.h.
namespace fleetfit::core {

/// Puts a file that is on the disk already into its place, on the same file system: it replaces
/// what was there, and is there under its new name when the machine has failed afterwards. Makes
/// the folders that are missing.
Status move_file(const std::filesystem::path& from, const std::filesystem::path& to);

/// What was made, renamed or removed in the folder stays so when the machine fails. Some file
/// systems cannot promise that.
void sync_folder(const std::filesystem::path& folder);

}  // namespace fleetfit::core
