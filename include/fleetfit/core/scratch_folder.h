#pragma once

#include <filesystem>

#include "fleetfit/core/result.h"

namespace fleetfit::core {

/// A new folder among the system's temporary files, removed with all its content at the end.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create();

  ScratchFolder(ScratchFolder&& other) noexcept;
  ScratchFolder& operator=(ScratchFolder&& other) noexcept;
  ~ScratchFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
};

}  // namespace fleetfit::core
