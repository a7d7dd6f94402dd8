#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "tests/source_dir.h"

namespace fleetfit {

/// The folder of public data that is no part of the repository: $FLEETFIT_SHARED_DATA, else
/// ../shared/data beside the source tree. Nothing if there is none; tests that need it skip.
inline std::optional<std::filesystem::path> shared_data() {
  const char* named = std::getenv("FLEETFIT_SHARED_DATA");
  const std::filesystem::path folder = named != nullptr ? named : source_dir() + "/../shared/data";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return std::nullopt;
  return folder;
}

}  // namespace fleetfit
